package page

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/upload"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// uploadTime is how long an upload and what follows may take.
const uploadTime = 10 * time.Minute

// upload adds a route that takes a file: the handler reads the body itself.
func (p *Page) upload(path string, need need, h handler) {
	p.handle("POST "+path, need, func(w http.ResponseWriter, r *http.Request) error {
		if r.ContentLength > upload.Most+formBytes { // refused before it is read
			return uploadFault(upload.ErrTooLarge)
		}
		leave, err := p.uploads.Enter(actor(r.Context()).Name)
		if err != nil {
			return &inputError{http.StatusServiceUnavailable, err.Error()}
		}
		defer leave()
		control, until := http.NewResponseController(w), time.Now().Add(uploadTime)
		if err := errors.Join(control.SetReadDeadline(until), control.SetWriteDeadline(until.Add(time.Minute))); err != nil {
			return err
		}
		r.Body = http.MaxBytesReader(w, r.Body, upload.Most+formBytes)
		return h(w, r)
	})
}

type pushedPage struct {
	Project, Fault string
	Report         *flow.PushReport
}

// pushProject stores the zip of a form as the next version of a project, whose name is in the path, or in the form before the file.
func (p *Page) pushProject(w http.ResponseWriter, r *http.Request) error {
	form, err := r.MultipartReader()
	if err != nil {
		return badInput("want a form with a file: %v", err)
	}
	project := r.PathValue("project")
	if project == "" {
		part, err := form.NextPart()
		if err != nil || part.FormName() != "project" {
			return badInput("want the project's name before the file")
		}
		name, err := io.ReadAll(io.LimitReader(part, 1000))
		if err != nil {
			return uploadFault(err)
		}
		project = string(name)
	}
	if err := flow.CheckProjectName(project); err != nil {
		return flowFault(err)
	}
	if err := access.Check(r.Context(), access.Admin, project); err != nil { // of a project that there is not, or not to be seen, the same
		return err
	}
	part, err := form.NextPart()
	if err != nil || part.FormName() != "zip" {
		return badInput("want a file named zip")
	}
	if part.FileName() == "" {
		return badInput("no file was chosen")
	}
	var stranded []periodic.Stranded
	report, err := p.pushPart(r, project, part, p.config.Schedules.StrandedInPush(project, &stranded))
	if faults, ok := errors.AsType[*flow.FaultsError](err); ok {
		data := pushedPage{Project: project, Report: report, Fault: plural(len(faults.Faults), "1 fault", "%d faults") + "; nothing was stored"}
		return p.renderStatus(w, r, http.StatusUnprocessableEntity, "flow_pushed", "Upload of "+project, data)
	}
	if err != nil {
		return flowFault(uploadFault(err))
	}
	notes := ""
	if len(report.Notes) > 0 {
		notes = plural(len(report.Notes), " There is a note on it.", " There are %d notes on it.")
	}
	return p.done(w, r, "/flows/"+url.PathEscape(project), "Stored version %d of %s: %s, %s.%s%s", report.Version.No, project,
		plural(len(report.Flows), "1 flow", "%d flows"), plural(report.Nodes, "1 node", "%d nodes"), notes, strandedWords(stranded))
}

// strandedShown is how many of the schedules that a push strands are told one by one.
const strandedShown = 3

// strandedWords tells of schedules that a push strands.
func strandedWords(list []periodic.Stranded) string {
	var b strings.Builder
	for _, s := range list[:min(len(list), strandedShown)] {
		fmt.Fprintf(&b, " Note: %s.", s)
	}
	if more := len(list) - strandedShown; more > 0 {
		fmt.Fprintf(&b, " So will those of %s.", plural(more, "another schedule", "%d other schedules"))
	}
	return b.String()
}

func (p *Page) pushPart(r *http.Request, project string, part *multipart.Part, with flow.InPush) (_ *flow.PushReport, err error) {
	file, err := upload.Take(part)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return p.config.Flows.PushZip(r.Context(), project, file, file.Size, with)
}

func uploadFault(err error) error {
	_, cut := errors.AsType[*http.MaxBytesError](err)
	switch {
	case cut, errors.Is(err, upload.ErrTooLarge):
		return &inputError{http.StatusRequestEntityTooLarge, upload.ErrTooLarge.Error()}
	case errors.Is(err, upload.ErrEmpty):
		return badInput("%v", err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, multipart.ErrMessageTooLarge) {
		return badInput("the upload broke off")
	}
	return err
}
