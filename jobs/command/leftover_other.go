//go:build !linux

package command

import (
	"context"
	"log/slog"
)

// EndLeftovers does nothing on this system: programs carry no marks.
func EndLeftovers(context.Context, Config, *slog.Logger) {}
