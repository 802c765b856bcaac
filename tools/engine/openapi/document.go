// Package libopenapi stands in for the module of that name when an engine is built here.
//
// Only `pulumi api`, which calls Pulumi Cloud, reads OpenAPI documents, and the real module is a fifth of all that
// there is to compile. An engine is built only where Pulumi's servers cannot be reached.
package libopenapi

import (
	"errors"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

type Document struct{}

type DocumentModel[T any] struct{ Model T }

func NewDocument([]byte) (*Document, error) {
	return nil, errors.New("this engine was built without `pulumi api`; install Pulumi (pulumi.com/docs/install)")
}

func (*Document) BuildV3Model() (*DocumentModel[v3.Document], error) { return nil, nil }
