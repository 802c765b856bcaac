//go:build tools

package buildx

import _ "github.com/docker/buildx/cmd/buildx"
