// Package store keeps projects, versions, runs and nodes of flows: the SQL of flows, and nothing that decides.
//
// A run is changed only under its row's lock ([Store.Lock]), by whoever applies what [flow_report] holds for it; the rows of the
// nodes that changed, the jobs of those that start, and the deletion of the reports are one transaction. So a scheduler
// that dies loses nothing, and two do nothing twice.
package store
