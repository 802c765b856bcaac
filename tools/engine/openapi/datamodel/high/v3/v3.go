// Package v3 has the fields of documents that `pulumi api` reads.
package v3

import (
	"github.com/pb33f/libopenapi/datamodel/high/base"
	"github.com/pb33f/libopenapi/orderedmap"
	"go.yaml.in/yaml/v4"
)

type Document struct {
	Info       *base.Info
	Paths      *Paths
	Components *Components
}

type Components struct {
	Schemas *orderedmap.Map[string, *base.SchemaProxy]
}

type Paths struct {
	PathItems *orderedmap.Map[string, *PathItem]
}

type PathItem struct {
	Get, Post, Put, Delete, Patch, Head *Operation
}

type Operation struct {
	OperationId, Summary, Description string
	Tags                              []string
	Parameters                        []*Parameter
	RequestBody                       *RequestBody
	Responses                         *Responses
	Deprecated                        *bool
	Extensions                        *orderedmap.Map[string, *yaml.Node]
}

type Parameter struct {
	Name, In, Description string
	Required              *bool
	Schema                *base.SchemaProxy
}

type RequestBody struct {
	Content *orderedmap.Map[string, *MediaType]
}

type Responses struct {
	Codes   *orderedmap.Map[string, *Response]
	Default *Response
}

type Response struct {
	Description string
	Content     *orderedmap.Map[string, *MediaType]
}

type MediaType struct{ Schema *base.SchemaProxy }
