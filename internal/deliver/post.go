package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// Post sends JSON to a URL, and wants an answer of 2xx. Errors name the server, and not the whole URL, which may be a secret: an
// [*AddressError] if it is none.
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
	resp, err := http.DefaultClient.Do(req)
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Errorf("webhook %s answered %s: %s", where, resp.Status, bytes.TrimSpace(text))
}
