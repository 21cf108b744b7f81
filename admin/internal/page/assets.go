package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load, under a name that changes with its content.
type asset struct {
	path, tag, kind string
	data            []byte
}

// assets by their file's name; assetPaths by their path.
var assets, assetPaths = loadAssets()

// AssetPath is where assets are. They are open to everybody: the login has a face too.
const AssetPath = "/assets/"

func loadAssets() (byName, byPath map[string]*asset) {
	byName, byPath = map[string]*asset{}, map[string]*asset{}
	entries, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range entries {
		data, err := fs.ReadFile(assetFiles, "assets/"+e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		tag := hex.EncodeToString(sum[:8])
		ending := path.Ext(e.Name())
		a := &asset{path: AssetPath + strings.TrimSuffix(e.Name(), ending) + "." + tag + ending, tag: `"` + tag + `"`, data: data}
		a.kind = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}[ending]
		if a.kind == "" {
			a.kind = mime.TypeByExtension(ending)
		}
		byName[e.Name()], byPath[a.path] = a, a
	}
	return byName, byPath
}

// Assets serves them.
func Assets(w http.ResponseWriter, r *http.Request) {
	a, ok := assetPaths[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}
