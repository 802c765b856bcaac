// Package base has the fields of schemas that `pulumi api` reads.
package base

import (
	"github.com/pb33f/libopenapi/orderedmap"
	"go.yaml.in/yaml/v4"
)

type Schema struct {
	Type, Required               []string
	Description, Format, Pattern string
	AllOf, OneOf, AnyOf          []*SchemaProxy
	Properties                   *orderedmap.Map[string, *SchemaProxy]
	Items, AdditionalProperties  *DynamicValue[*SchemaProxy, bool]
	Discriminator                *Discriminator
	Enum                         []*yaml.Node
	Default                      *yaml.Node
	Extensions                   *orderedmap.Map[string, *yaml.Node]
	Nullable, ReadOnly           *bool
	MinLength, MaxLength         *int64
	Minimum, Maximum, MultipleOf *float64
}

type SchemaProxy struct{}

type Discriminator struct {
	PropertyName string
	Mapping      *orderedmap.Map[string, string]
}

type DynamicValue[A, B any] struct{ A A }

type Info struct{ Version string }

type low struct{}

func (*Schema) GoLow() *low { return nil }

func (*Schema) MarshalJSONInline() ([]byte, error) { return nil, nil }

func (*low) Hash() uint64 { return 0 }

func (*SchemaProxy) Schema() *Schema { return nil }

func (*DynamicValue[A, B]) IsA() bool { return false }
