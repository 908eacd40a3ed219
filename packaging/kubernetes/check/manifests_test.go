// Package check decodes the manifests strictly into the types of Kubernetes' API. It is a module of its own, so that
// nothing else needs them.
package check

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// decode returns the objects of a file. Unknown and repeated fields are errors.
func decode(content []byte) (all []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, policy.AddToScheme,
		networking.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

func TestTheTypesOfTheAPIKnowEveryField(t *testing.T) {
	content, err := os.ReadFile("../souvenir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := decode(content)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	labels, selects := map[string]string{}, map[string]map[string]string{}
	for _, object := range all {
		kinds = append(kinds, reflect.TypeOf(object).Elem().Name())
		switch o := object.(type) {
		case *apps.Deployment:
			labels, selects["Deployment"] = o.Spec.Template.Labels, o.Spec.Selector.MatchLabels
		case *core.Service:
			selects["Service"] = o.Spec.Selector
		case *policy.PodDisruptionBudget:
			selects["PodDisruptionBudget"] = o.Spec.Selector.MatchLabels
		case *networking.NetworkPolicy:
			selects["NetworkPolicy"] = o.Spec.PodSelector.MatchLabels
		}
	}
	want := "ServiceAccount Deployment Service PodDisruptionBudget NetworkPolicy"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for kind, selected := range selects {
		if len(selected) == 0 {
			t.Errorf("%s selects all pods, want those of the deployment", kind)
		}
		for key, value := range selected {
			if labels[key] != value {
				t.Errorf("%s selects %s %q, want the deployment's %q", kind, key, value, labels[key])
			}
		}
	}
	// The types must be able to refuse something.
	for right, wrong := range map[string]string{
		"replicas:":                    "replica:",
		"readOnlyRootFilesystem: true": "readOnlyRootFilesystem: maybe",
		"podSelector:":                 "podsSelector:",
		"policy/v1":                    "policy/v2",
		"containerPort:":               "containerPorts:",
	} {
		changed := strings.Replace(string(content), right, wrong, 1)
		if changed == string(content) {
			t.Errorf("the manifests have no %q, want it there", right)
		}
		if _, err := decode([]byte(changed)); err == nil {
			t.Errorf("got no error for %q in place of %q, want one", wrong, right)
		}
	}
}
