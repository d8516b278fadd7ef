// Command collector reads OTLP profiles with the code of OpenTelemetry's collector, and prints the
// resource's attributes, and for each type of value its sum and the labels of its heaviest stack.
package main

import (
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

func main() {
	bytes, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var reader pprofile.Unmarshaler = new(pprofile.ProtoUnmarshaler)
	if strings.HasSuffix(os.Args[1], ".json") {
		reader = new(pprofile.JSONUnmarshaler)
	}
	profiles, err := reader.UnmarshalProfiles(bytes)
	if err != nil {
		log.Fatal(err)
	}
	dictionary := profiles.Dictionary()
	for _, resource := range profiles.ResourceProfiles().All() {
		fmt.Println("resource", pairs(resource.Resource().Attributes().AsRaw()))
		for _, scope := range resource.ScopeProfiles().All() {
			for _, profile := range scope.Profiles().All() {
				show(dictionary, profile)
			}
		}
	}
}

// show prints one profile.
func show(dictionary pprofile.ProfilesDictionary, profile pprofile.Profile) {
	var sum, most int64
	heaviest := ""
	for _, sample := range profile.Samples().All() {
		var weight int64
		for _, value := range sample.Values().All() {
			weight += value
		}
		sum += weight
		if weight > most {
			most, heaviest = weight, stack(dictionary, sample)
		}
	}
	name := dictionary.StringTable().At(int(profile.SampleType().TypeStrindex()))
	unit := dictionary.StringTable().At(int(profile.SampleType().UnitStrindex()))
	fmt.Println(name, unit, sum, heaviest)
}

// stack is the innermost function of a sample with its attributes and its link.
func stack(dictionary pprofile.ProfilesDictionary, sample pprofile.Sample) string {
	text := func(index int32) string { return dictionary.StringTable().At(int(index)) }
	locations := dictionary.StackTable().At(int(sample.StackIndex())).LocationIndices()
	location := dictionary.LocationTable().At(int(locations.At(0)))
	function := dictionary.FunctionTable().At(int(location.Lines().At(0).FunctionIndex()))
	attributes := map[string]any{}
	for _, index := range sample.AttributeIndices().All() {
		attribute := dictionary.AttributeTable().At(int(index))
		attributes[text(attribute.KeyStrindex())] = attribute.Value().AsRaw()
	}
	link := dictionary.LinkTable().At(int(sample.LinkIndex()))
	return text(function.NameStrindex()) + " " + pairs(attributes) + " " + link.TraceID().String()
}

// pairs are names and values in the order of the names.
func pairs(attributes map[string]any) string {
	words := []string{}
	for name, value := range attributes {
		words = append(words, fmt.Sprintf("%s=%v", name, value))
	}
	sort.Strings(words)
	return strings.Join(words, " ")
}
