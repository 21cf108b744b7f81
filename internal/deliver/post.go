package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// answerBytes is how much of an answer an error tells: enough for "no_such_channel", and too little to read pages by.
const answerBytes = 100

// client follows no redirects: who may name a server has not named where it sends to.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Post sends JSON to a URL, and wants an answer of 2xx. It follows no redirects. Errors name the server, and not the whole URL, which may be a secret; of
// another answer they tell the status, and the first 100 bytes of what a 4xx says in plain text or JSON. An [*AddressError] if it is no URL.
func Post(ctx context.Context, to string, body []byte, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &AddressError{"webhook", errors.New("want a URL with http:// or https://")}
	}
	where := u.Scheme + "://" + u.Host
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return &AddressError{where, errors.New("cannot be asked")}
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pelton")
	resp, err := client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return fmt.Errorf("webhook %s: %w", where, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("webhook %s answered %s%s", where, resp.Status, said(resp))
}

// said is the beginning of what an answer says of a request that was wrong, for who set up the webhook; empty for any other answer.
func said(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 != 4 || kind != "text/plain" && kind != "application/json" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " "); line != "" {
		return ": " + line
	}
	return ""
}
