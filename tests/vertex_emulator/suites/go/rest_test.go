package training

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

var pathVariable = regexp.MustCompile(`\{(\w+)=[^}]*\}`)

// overREST sends calls of gRPC as the REST requests that the API's google.api.http options name.
func overREST(endpoint, token string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			return err
		}
		rule := proto.GetExtension(descriptor.Options(), annotations.E_Http).(*annotations.HttpRule)
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(request.(proto.Message))
		if err != nil {
			return err
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		verb, template := http.MethodGet, rule.GetGet()
		switch rule.GetPattern().(type) {
		case *annotations.HttpRule_Post:
			verb, template = http.MethodPost, rule.GetPost()
		case *annotations.HttpRule_Delete:
			verb, template = http.MethodDelete, rule.GetDelete()
		}
		path := pathVariable.ReplaceAllStringFunc(template, func(variable string) string {
			field := pathVariable.FindStringSubmatch(variable)[1]
			value := strings.Trim(string(fields[field]), `"`)
			delete(fields, field)
			return value
		})
		body := []byte(fields[rule.GetBody()])
		delete(fields, rule.GetBody())
		query := url.Values{}
		if rule.GetBody() == "*" {
			body, _ = json.Marshal(fields)
		} else {
			for field, value := range fields {
				query.Set(field, strings.Trim(string(value), `"`))
			}
		}

		sent, err := http.NewRequestWithContext(ctx, verb, endpoint+path+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			return err
		}
		sent.Header.Set("Authorization", "Bearer "+token)
		sent.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(sent)
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		if response.StatusCode != http.StatusOK {
			var failure struct {
				Error struct {
					Status  codes.Code
					Message string
				}
			}
			if err := json.Unmarshal(answer, &failure); err != nil {
				return fmt.Errorf("%s: %s", response.Status, answer)
			}
			return status.Error(failure.Error.Status, failure.Error.Message)
		}
		return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(answer, reply.(proto.Message))
	}
}
