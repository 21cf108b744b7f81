package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/upload"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

const (
	// zipTime is how long a push may take, the upload included.
	zipTime = 5 * time.Minute
)

func (s *server) addFlows() {
	add(s, operation{
		id: "flows-list", method: http.MethodGet, path: "/flows", tag: "flows", errors: []int{http.StatusNotFound},
		summary: "List the flows of the newest versions, with their last runs",
		detail:  "Those of projects in which you are a viewer.",
	}, s.flowsList)
	add(s, operation{
		id: "flows-versions", method: http.MethodGet, path: "/projects/{project}/versions", tag: "flows",
		summary: "List pushed versions, the newest first",
	}, s.flowsVersions)
	add(s, operation{
		id: "flows-push", method: http.MethodPost, path: "/projects/{project}/versions", tag: "flows", status: http.StatusCreated,
		summary: "Store a project, a zip, as its next version", upload: "application/zip", body: upload.Most, time: zipTime, errors: []int{http.StatusConflict},
		detail: "All that is wrong with it is reported at once, and then nothing is stored. With check nothing is stored in any case.",
	}, s.flowsPush)
	add(s, operation{
		id: "flows-graph", method: http.MethodGet, path: "/projects/{project}/flows/{flow}/graph", tag: "flows", stream: "image/svg+xml",
		summary: "Draw a flow", detail: "A flow that is too large to be drawn is a problem of type invalid-request.",
	}, s.flowsGraph)
}

// ProjectPath names a project.
type ProjectPath struct {
	Project string `path:"project" minLength:"1" maxLength:"64" doc:"the name of the project"`
}

// FlowPath names a flow.
type FlowPath struct {
	ProjectPath

	Flow string `path:"flow" minLength:"1" maxLength:"1000" doc:"the name of the flow"`
}

// viewed are the projects that a list may show; nil: all. One that is asked for must be among them.
func viewed(ctx context.Context, asked string) (projects []string, err error) {
	if asked != "" {
		return []string{asked}, access.Check(ctx, access.Viewer, asked)
	}
	actor, _ := access.FromContext(ctx)
	switch all, names := actor.Projects(access.Viewer); {
	case all:
		return nil, nil
	case len(names) > 0:
		return names, nil
	}
	return nil, access.Check(ctx, access.Viewer, "")
}

type flowsListInput struct {
	Paging

	Project string `query:"project" maxLength:"64" doc:"of this project"`
}

// flowPlace is the position of a flow in the list of flows.
type flowPlace struct {
	Project string `json:"p"`
	Flow    string `json:"f"`
}

func (s *server) flowsList(ctx context.Context, in *flowsListInput) (*answer[Page[flow.Entry]], error) {
	projects, err := viewed(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	const list = "flows"
	after, err := positionOf[flowPlace](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := flow.EntryFilter{Project: in.Project, Projects: projects}
	if after != nil {
		f.AfterProject, f.AfterFlow = after.Project, after.Flow
	}
	flows, err := s.Flows.ListFlows(ctx, f, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &answer[Page[flow.Entry]]{pageOf(list, append([]flow.Entry{}, flows...), in.Limit, func(e flow.Entry) any { return flowPlace{e.Project, e.Flow} })}, nil
}

type flowsVersionsInput struct {
	ProjectPath
	Paging
}

func (s *server) flowsVersions(ctx context.Context, in *flowsVersionsInput) (*answer[Page[flow.Version]], error) {
	if err := access.Check(ctx, access.Viewer, in.Project); err != nil {
		return nil, err
	}
	const list = "versions"
	before, err := positionOf[int32](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	below := math.MaxInt32
	if before != nil {
		below = int(*before)
	}
	return answered(readPage(list, in.Limit, func(v flow.Version) any { return v.No }, func(last *flow.Version, limit int) ([]flow.Version, error) {
		if last != nil {
			below = last.No
		}
		return s.Flows.VersionsBefore(ctx, in.Project, below, limit)
	}))
}

// Upload is the body of a request that is a file, which the handler reads.
type Upload struct {
	body io.Reader
}

// Resolve implements huma.Resolver.
func (u *Upload) Resolve(ctx huma.Context) []error {
	u.body = ctx.BodyReader()
	return nil
}

type flowsPushInput struct {
	ProjectPath
	Upload

	Check        bool   `query:"check" doc:"report only, store nothing"`
	WithSchedule bool   `query:"with_schedule" doc:"make a schedule PROJECT/FLOW of the schedule that a flow's trigger names, or bring the one that an earlier push made in step"`
	TimeZone     string `query:"time_zone" maxLength:"100" doc:"with with_schedule: time zone of these schedules (default: that which they have, or UTC)"`
}

// Pushed is the answer to a push.
type Pushed struct {
	flow.PushReport

	Schedules []periodic.TriggerChange `json:"schedules,omitempty" doc:"what became of the schedules of the flows' triggers"`
	Stranded  []periodic.Stranded      `json:"stranded,omitempty" doc:"schedules that run a flow which this version lacks: their ticks will fail"`
}

func (s *server) flowsPush(ctx context.Context, in *flowsPushInput) (*answer[Pushed], error) {
	if err := access.Check(ctx, access.Admin, in.Project); err != nil {
		return nil, err
	}
	if err := flow.CheckProjectName(in.Project); err != nil {
		return nil, invalid("path.project", "%v", err)
	}
	switch _, err := time.LoadLocation(in.TimeZone); {
	case in.TimeZone != "" && !in.WithSchedule:
		return nil, invalid("query.time_zone", "it goes with with_schedule")
	case err != nil:
		return nil, invalid("query.time_zone", "unknown time zone %q: want an IANA name as Europe/Berlin", in.TimeZone)
	}
	pushed, err := s.takePush(ctx, in)
	if faults, is := errors.AsType[*flow.FaultsError](err); is {
		return nil, faultsProblem(faults)
	}
	if err != nil {
		return nil, err
	}
	return &answer[Pushed]{*pushed}, nil
}

// takePush takes the upload, and pushes it.
func (s *server) takePush(ctx context.Context, in *flowsPushInput) (*Pushed, error) {
	actor, _ := access.FromContext(ctx)
	leave, err := s.uploads.Enter(actor.Name)
	if err != nil {
		p := newProblem("busy", "%v", err)
		p.header("Retry-After", "5")
		return nil, p
	}
	defer leave()
	file, err := upload.Take(in.body)
	_, cut := errors.AsType[*http.MaxBytesError](err)
	switch {
	case cut, errors.Is(err, upload.ErrTooLarge):
		return nil, newProblem("body-too-large", "%v", upload.ErrTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem("slow-body", "the upload took more than %v", zipTime)
	case err != nil:
		return nil, newProblem("bad-body", "the upload cannot be taken: %v", err)
	}
	defer file.Close() //nolint:errcheck // it is gone
	return s.push(ctx, in, file)
}

func (s *server) push(ctx context.Context, in *flowsPushInput, file *upload.File) (*Pushed, error) {
	report, err := s.Flows.CheckZip(ctx, file, file.Size)
	if err != nil {
		return nil, err
	}
	if in.WithSchedule {
		if err := s.Schedules.CheckTriggers(in.Project, report.Triggers); err != nil {
			return nil, newProblem("invalid-flow", "%v; nothing was stored", err)
		}
	}
	pushed := &Pushed{}
	if in.Check {
		pushed.PushReport = *report
		pushed.Stranded, err = s.Schedules.Stranded(ctx, in.Project, report.Flows)
		return pushed, err
	}
	var with []flow.InPush
	if in.WithSchedule {
		with = append(with, s.Schedules.InPush(in.Project, in.TimeZone, &pushed.Schedules))
	}
	with = append(with, s.Schedules.StrandedInPush(in.Project, &pushed.Stranded))
	if report, err = s.Flows.PushZip(ctx, in.Project, file, file.Size, with...); err != nil {
		return nil, err
	}
	pushed.PushReport = *report
	return pushed, nil
}

// faultsProblem lists the faults of an upload.
func faultsProblem(err *flow.FaultsError) *problem {
	p := newProblem("invalid-flow", "%v", err)
	for _, f := range err.Faults {
		if len(p.Errors) == mostFaults {
			break
		}
		p.Errors = append(p.Errors, fault{strings.TrimSuffix(strings.TrimSuffix(f.String(), f.Reason), ": "), f.Reason})
	}
	return p
}

type flowsGraphInput struct {
	FlowPath

	Version int `query:"version" minimum:"0" doc:"of the project (default: the newest)"`
}

func (s *server) flowsGraph(ctx context.Context, in *flowsGraphInput) (*huma.StreamResponse, error) {
	if err := access.Check(ctx, access.Viewer, in.Project); err != nil {
		return nil, err
	}
	return s.picture(ctx, func(ctx context.Context, w io.Writer) error {
		return s.Flows.SVG(ctx, w, in.Project, in.Flow, in.Version)
	})
}

// pictureTime is how long drawing may take.
const pictureTime = 20 * time.Second

// picture draws first, so that what is wrong is a problem, and then answers.
func (s *server) picture(ctx context.Context, draw func(ctx context.Context, w io.Writer) error) (*huma.StreamResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pictureTime, errTooSlow)
	defer cancel()
	var drawn bytes.Buffer
	if err := draw(ctx, &drawn); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "image/svg+xml")
		ctx.SetHeader("Content-Security-Policy", "default-src 'none'")
		_, _ = ctx.BodyWriter().Write(drawn.Bytes()) // nobody is left to tell
	}}, nil
}
