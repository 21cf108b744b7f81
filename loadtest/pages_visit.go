package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// visitor reads pages of a server, as a browser would.
type visitor struct {
	base  string
	reads int
}

// pageLimit bounds how many kinds of pages are visited.
const pageLimit = 200

var (
	linkPattern = regexp.MustCompile(`href="(/[^"#]*)`)
	livePattern = regexp.MustCompile(`data-live="([^"]*)"`)
	logPattern  = regexp.MustCompile(`data-follow="([^"]*)"`)
	namePattern = regexp.MustCompile(`^(.*\d.*|schedule-.*|kind-.*|queue-.*|executor-.*|node-.*|large)$`)
)

// kindOf is a path without what names one thing: ids, names, and values of the query.
func kindOf(path string) string {
	path, query, asked := strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if namePattern.MatchString(part) && part != "v1" {
			parts[i] = "*"
		}
	}
	kind := strings.Join(parts, "/")
	if !asked {
		return kind
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return kind
	}
	var keys []string
	for key := range values {
		if values.Get(key) != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return kind + "?" + strings.Join(keys, "&")
}

// visitAll measures the paths given, and one page of each kind that links lead to.
func (v *visitor) visitAll(ctx context.Context, paths []string) ([]PageTime, error) {
	var times []PageTime
	seen := map[string]bool{} // kinds
	given := len(paths)
	for i := 0; i < len(paths) && len(times) < pageLimit; i++ {
		kind := kindOf(paths[i])
		if i >= given && seen[kind] || strings.HasPrefix(kind, "/assets") || strings.HasPrefix(kind, "/login") || strings.HasPrefix(kind, "/logout") {
			continue
		}
		seen[kind] = true
		one, body, err := v.visit(ctx, paths[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		one.Page = kind
		times = append(times, one)
		for _, link := range linkPattern.FindAllSubmatch(body, -1) {
			if next := html.UnescapeString(string(link[1])); !seen[kindOf(next)] {
				paths = append(paths, next)
			}
		}
	}
	return times, nil
}

// unmeasured reads warm caches up.
const unmeasured = 2

// visit reads a page some times.
func (v *visitor) visit(ctx context.Context, path string) (PageTime, []byte, error) {
	one := PageTime{Asked: path}
	var last []byte
	var took []float64
	for i := range v.reads {
		begun := time.Now()
		response, err := v.get(ctx, path)
		if err != nil {
			return one, nil, err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return one, nil, err
		}
		if i >= unmeasured {
			took = append(took, float64(time.Since(begun).Microseconds())/1000)
		}
		if response.StatusCode >= http.StatusInternalServerError {
			return one, nil, fmt.Errorf("status %s: %s", response.Status, oneLine(string(body), 500))
		}
		one.Status, one.Bytes, last = response.StatusCode, len(body), body
	}
	slices.Sort(took)
	one.Median, one.P95 = rounded(median(took)), rounded(took[len(took)*95/100])
	return one, last, nil
}

func (v *visitor) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/html")
	return http.DefaultClient.Do(request)
}

// find finds an address in a page.
func (v *visitor) find(ctx context.Context, path string, pattern *regexp.Regexp) (string, error) {
	_, body, err := (&visitor{base: v.base, reads: unmeasured + 1}).visit(ctx, path)
	if err != nil {
		return "", err
	}
	found := pattern.FindSubmatch(body)
	if found == nil {
		return "", fmt.Errorf("%s has nothing live", path)
	}
	return html.UnescapeString(string(found[1])), nil
}

// ticking prints the time in nanoseconds, five times a second.
const ticking = `{"command": "sh -c 'for i in $(seq 1 60); do echo at $(date +%s%N); sleep 0.2; done'"}`

// liveLog follows the log of a job that prints the time, and measures how old each line is when it is here.
func (v *visitor) liveLog(ctx context.Context, pool *pgxpool.Pool) (p50, most float64, err error) {
	var job int64
	const enqueue = `SELECT id FROM pelton.insert_jobs(ARRAY['command'], ARRAY[$1::text], ARRAY['live'], ARRAY[1::smallint], ARRAY[1::smallint], NULL, NULL, NULL, NULL, NULL, NULL, true)`
	if err := pool.QueryRow(ctx, enqueue, ticking).Scan(&job); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var path string
	for {
		if path, err = v.find(ctx, fmt.Sprintf("/jobs/%d", job), logPattern); err == nil {
			break
		}
		if stopped := pause(ctx, 100*time.Millisecond); stopped != nil {
			return 0, 0, errors.Join(err, stopped)
		}
	}
	response, err := v.get(ctx, path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	var ages []float64
	at := regexp.MustCompile(`at (\d{19})`)
	lines := bufio.NewReader(response.Body)
	newest := int64(0)
	for len(ages) < 40 {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0, 0, fmt.Errorf("%s: after %d lines: %w", path, len(ages), err)
		}
		for _, found := range at.FindAllSubmatch(bytes.TrimSpace(line), -1) {
			printed, err := strconv.ParseInt(string(found[1]), 10, 64)
			if err != nil {
				return 0, 0, err
			}
			if printed > newest { // a part that is sent whole repeats lines
				newest = printed
				ages = append(ages, float64(time.Now().UnixNano()-printed)/1e6)
			}
		}
	}
	ages = ages[5:] // printed before the stream was there
	slices.Sort(ages)
	return rounded(median(ages)), rounded(ages[len(ages)-1]), nil
}

// settleTime is how long after viewers come or go their load is not measured.
const settleTime = 5 * time.Second

// spentBy is the processor time of the two processes that answer.
type spentBy struct{ server, postgres time.Duration }

func (s spentBy) less(o spentBy) spentBy {
	return spentBy{s.server - o.server, s.postgres - o.postgres}
}

// viewersLoad measures what viewers of the overview add: rounds without and with them by turns, the first and the last without.
func (s *server) viewersLoad(ctx context.Context, v *visitor, serving PageServer, config PagesConfig) (ViewersLoad, error) {
	overview, err := v.find(ctx, "/", livePattern)
	if err != nil {
		return ViewersLoad{}, err
	}
	path := "/live?part=" + url.QueryEscape(overview)
	var alone, watched []spentBy
	for len(alone) <= config.Rounds {
		one, err := s.spentIn(ctx, serving, config.For)
		if err != nil {
			return ViewersLoad{}, err
		}
		if alone = append(alone, one); len(alone) > config.Rounds {
			break
		}
		watching, stop := context.WithCancel(ctx)
		done := make(chan error, config.Viewers)
		for range config.Viewers {
			go func() { done <- v.watch(watching, path) }()
		}
		one, err = s.spentIn(ctx, serving, config.For)
		stop()
		for range config.Viewers {
			err = errors.Join(err, <-done)
		}
		if err != nil {
			return ViewersLoad{}, err
		}
		watched = append(watched, one)
	}
	return loadOf(alone, watched, config.For), nil
}

// spentIn is what is spent in a round.
func (s *server) spentIn(ctx context.Context, serving PageServer, round time.Duration) (spentBy, error) {
	if err := pause(ctx, settleTime); err != nil {
		return spentBy{}, err
	}
	before, err := s.cpu(serving)
	if err != nil {
		return spentBy{}, err
	}
	if err := pause(ctx, round); err != nil {
		return spentBy{}, err
	}
	after, err := s.cpu(serving)
	return after.less(before), err
}

// loadOf compares each round with viewers with those before and after it; there is one more without.
func loadOf(alone, watched []spentBy, round time.Duration) ViewersLoad {
	percent := func(d time.Duration) float64 { return float64(d) / float64(round) * 100 }
	var without, both, server, postgres []float64
	for _, a := range alone {
		without = append(without, percent(a.server+a.postgres))
	}
	for i, w := range watched {
		around := spentBy{(alone[i].server + alone[i+1].server) / 2, (alone[i].postgres + alone[i+1].postgres) / 2}
		added := w.less(around)
		server, postgres = append(server, percent(added.server)), append(postgres, percent(added.postgres))
		both = append(both, percent(added.server+added.postgres))
	}
	for _, list := range [][]float64{without, both, server, postgres} {
		slices.Sort(list)
	}
	return ViewersLoad{
		Rounds: len(watched), Alone: rounded(median(without)), Median: rounded(median(both)), Least: rounded(both[0]), Most: rounded(both[len(both)-1]),
		Server: rounded(median(server)), Postgres: rounded(median(postgres)),
	}
}

// watch reads a live part until ctx ends.
func (v *visitor) watch(ctx context.Context, path string) error {
	response, err := v.get(ctx, path)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	err = errors.Join(err, response.Body.Close())
	if ctx.Err() == nil && err == nil {
		err = fmt.Errorf("%s ended by itself", path)
	}
	if ctx.Err() != nil {
		err = nil // it was to end
	}
	return err
}

// cpu is the processor time of the process that serves and of PostgreSQL so far.
func (s *server) cpu(serving PageServer) (so spentBy, err error) {
	if so.postgres, err = s.cluster.CPUTime(); err != nil {
		return so, err
	}
	so.server, err = serving.CPU()
	return so, err
}
