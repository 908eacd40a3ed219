// Command oldfiles makes a store with rows of all kinds that the program of its commit can make. e2e/oldfiles.sh builds
// it in old commits, so it finds methods and fields by name, and leaves out missing ones.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	souvenir "github.com/souvenir-ai/souvenir"
)

// fields are values for the fields of structs, or for a map.
type fields = map[string]any

func main() {
	s, err := souvenir.Open(context.Background(), os.Args[1], nil)
	if err != nil {
		panic(err)
	}
	store := reflect.ValueOf(s)
	ann, ben := reflect.ValueOf(s.As(souvenir.Access{User: "ann"})), reflect.ValueOf(s.As(souvenir.Access{User: "ben"}))
	memories(store)
	project(store, ann, ben)
	belongings(ann)
	credentials(store, ann)
	call(store, "WaitEmbedded")
	call(store, "StoreIndex")
	call(store, "Compact")
	if err := s.Close(); err != nil {
		panic(err)
	}
}

func memories(store reflect.Value) {
	call(store, "AddCollection", fields{"Name": "work", "Description": "of the day"})
	kettle := call(store, "AddMemory", fields{"Content": "The kettle is red.", "Tags": []string{"tea"},
		"ProjectName": "house", "Metadata": fields{"votes": 3}, "Key": "kettle",
		"EventTime": time.Date(2024, 5, 1, 16, 0, 0, 0, time.UTC)})
	call(store, "UpdateMemory", text(kettle, "ID"), fields{"Content": "The kettle is blue."})
	call(store, "AddMemory", fields{"Collection": "work", "Content": "東京の天気 and Ünïcode", "EventType": "note",
		"Related": []string{text(kettle, "ID")}, "ExpiresAt": time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)})
	cup := call(store, "AddMemory", fields{"Content": "A cup that broke.", "Tags": []string{"waste"}})
	call(store, "DeleteMemory", text(cup, "ID"))
	call(store, "UpdateCollection", "work", fields{"Retention": fields{"After": 3650 * 24 * time.Hour}})
	if open := store.MethodByName("Conversation"); open.IsValid() {
		chat := open.Call([]reflect.Value{reflect.ValueOf("chat")})[0]
		call(chat, "Append", fields{"Role": "user", "Content": "Is the water hot?"})
	}
}

func project(store, ann, ben reflect.Value) {
	call(store, "AddUser", fields{"ID": "ann", "Name": "ann", "Email": "ann@example.com", "Role": "admin",
		"Password": "nine blue kettles"})
	call(store, "AddUser", fields{"ID": "ben", "Name": "ben", "Role": "user", "Password": "eight green kettles"})
	call(ann, "AddProject", fields{"ID": "garden", "Name": "Garden"})
	call(ann, "AddMember", fields{"Project": fields{"ID": "garden"}, "User": "ben", "Role": "writer"})
	if all := call(ben, "ProjectInvitations"); all.IsValid() && all.Len() > 0 {
		call(ben, "AcceptProjectInvitation", text(all.Index(0), "ID"))
	}
	call(ann, "AddMemory", fields{"Content": "Roses grow in the garden.", "ProjectID": "garden"})
	call(ann, "AddProject", fields{"ID": "shed", "Name": "Shed"})
	call(ann, "AddMemory", fields{"Content": "The spade is in the shed.", "ProjectID": "shed"})
	call(ann, "DeleteProject", fields{"Project": fields{"ID": "shed"}, "ID": "shed", "WithMemories": true})
}

func belongings(ann reflect.Value) {
	call(ann, "AddFile", fields{"Filename": "plan.txt", "ProjectID": "garden", "Description": "a plan",
		"Tags": []string{"paper"}}, io.Reader(strings.NewReader("abc")))
	lost := call(ann, "AddFile", fields{"Filename": "lost.txt"}, io.Reader(strings.NewReader("lost")))
	call(ann, "DeleteFile", text(lost, "ID"))
	call(ann, "SetTodo", fields{"ProjectID": "garden", "Content": "## Constitution\n\n## Spec\n\nTea.\n\n## Plan\n\n" +
		"## Tasks\n\n- [ ] T001 boil water\n- [ ] T002 find cups\n\n## Gaps\n"})
	call(ann, "CompleteTask", fields{"ProjectID": "garden", "TaskID": "T002"})
	call(ann, "SetRule", fields{"ProjectID": "garden", "Type": "do", "Content": "Warm the pot first."})
	call(ann, "SetPreferences", fields{"theme": "dark"})
	call(ann, "SetIdentityMemory", fields{"Content": "A gardener.", "Nicknames": []string{"Annie"}})
}

func credentials(store, ann reflect.Value) {
	call(ann, "AddToken", fields{"Name": "laptop", "Scopes": []string{"memory:read"}})
	call(store, "LinkIdentity", fields{"User": "ann", "Issuer": "https://issuer.example", "Subject": "sub-1",
		"Email": "ann@example.com"})
	call(store, "AddInvitation", fields{"Purpose": "account", "Role": "user", "Email": "cid@example.com",
		"CreatedBy": "ann", "ExpiresAt": time.Now().Add(time.Hour)})
	call(store, "AddSession", fields{"User": "ann", "UserAgent": "browser"})
	call(store, "AddSignIn", fields{"User": "ann", "UserAgent": "browser"})
	call(store, "RecordActivity", fields{"Principal": fields{"User": fields{"ID": "ann"}, "Access": fields{"User": "ann"}},
		"Client": "laptop", "Tool": "search", "Action": "search_memories", "Outcome": "ok", "StartedAt": time.Now(),
		"Duration": time.Millisecond})

	const verifier, callback = "a verifier of the code, which has 43 or more bytes", "https://app.example/cb"
	hash := sha256.Sum256([]byte(verifier))
	call(ann, "AddClient", fields{"ID": "app", "Name": "App", "RedirectURIs": []string{callback}, "AuthMethod": "none"})
	code := call(ann, "Authorize", fields{"ClientID": "app", "RedirectURI": callback, "Scopes": []string{"memory:read"},
		"CodeChallenge": base64.RawURLEncoding.EncodeToString(hash[:]), "CodeChallengeMethod": "S256",
		"Resource": "https://store.example/mcp"})
	call(store, "ExchangeCode", fields{"Client": fields{"ID": "app"}, "Code": text(code, "Code"), "RedirectURI": callback,
		"Verifier": verifier, "Resource": "https://store.example/mcp", "Issuer": "https://store.example",
		"Audience": "https://store.example/mcp"})
}

// call calls a method of a store, of one of its handles, or of another value, and prints its error. Structs and maps
// are filled from fields, and other parameters take the other arguments in their order.
func call(on reflect.Value, method string, args ...any) (result reflect.Value) {
	f := on.MethodByName(method)
	for _, handle := range []string{"Accounts", "Upkeep"} {
		if of := on.MethodByName(handle); !f.IsValid() && of.IsValid() {
			f = of.Call(nil)[0].MethodByName(method)
		}
	}
	if !f.IsValid() {
		fmt.Println(method, "is not there")
		return reflect.Value{}
	}
	named := fields{}
	var plain []any
	for _, arg := range args {
		if some, ok := arg.(fields); ok {
			named = some
		} else {
			plain = append(plain, arg)
		}
	}
	in := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < f.Type().NumIn(); i++ {
		t := f.Type().In(i)
		if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
			t = t.Elem()
		}
		v := reflect.New(t).Elem()
		isStruct := t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
		switch {
		case isStruct || t.Kind() == reflect.Map:
			set(v, named)
		case len(plain) > 0:
			set(v, plain[0])
			plain = plain[1:]
		}
		in = append(in, v)
	}
	out := f.Call(in)
	if err, ok := out[len(out)-1].Interface().(error); ok {
		fmt.Println(method, "fails:", err)
		return reflect.Value{}
	}
	return out[0]
}

// set sets a value of any type. Fields that a struct does not have are left out.
func set(v reflect.Value, to any) {
	given := reflect.ValueOf(to)
	switch {
	case given.Type().AssignableTo(v.Type()):
		v.Set(given)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), to)
	case v.Kind() == reflect.Struct:
		for name, value := range to.(fields) {
			if field := v.FieldByName(name); field.IsValid() && field.CanSet() {
				set(field, value)
			}
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), given.Len(), given.Len()))
		for i := range given.Len() {
			set(v.Index(i), given.Index(i).Interface())
		}
	default:
		v.Set(given.Convert(v.Type()))
	}
}

// text returns a field of a result, or nothing if its call failed.
func text(of reflect.Value, field string) string {
	if !of.IsValid() {
		return ""
	}
	return of.FieldByName(field).String()
}
