package filter

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

func textValue(v any) (any, error) {
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return r.String(), valid.UTF8("", r.String())
	}
	return nil, fmt.Errorf(" is %s; expected a string", jsonobject.Show(v))
}

// foldedName folds a text for comparison with names of projects.
func foldedName(v any) (any, error) {
	text, err := textValue(v)
	if name, ok := text.(string); ok && err == nil {
		return foldname.Key(name), nil
	}
	return nil, err
}

func timeValue(v any) (timeSpan, error) {
	switch v := v.(type) {
	case time.Time:
		return timeSpan{v.UnixMicro(), v.UnixMicro() + 1}, nil
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err := time.Parse(layout, v); err == nil {
				return timeSpan{t.UnixMicro(), t.UnixMicro() + 1}, nil
			}
		}
		if t, err := time.Parse(time.DateOnly, v); err == nil {
			return timeSpan{t.UnixMicro(), t.AddDate(0, 0, 1).UnixMicro()}, nil
		}
	}
	return timeSpan{}, fmt.Errorf(
		` is %s; expected a time, such as "2026-03-01T09:00:00Z", or a day, such as "2026-03-01"`, jsonobject.Show(v))
}

// scalarValue converts a value to its JSON form.
func scalarValue(v any) (any, error) {
	if t, ok := v.(time.Time); ok {
		return t.Format(time.RFC3339Nano), nil // as encoding/json stores it
	}
	if number, ok := v.(json.Number); ok {
		if i, err := number.Int64(); err == nil {
			return i, nil
		}
		if f, err := number.Float64(); err == nil {
			return f, nil
		}
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return textValue(v)
	case reflect.Bool:
		if r.Bool() {
			return int64(1), nil
		}
		return int64(0), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.Uint() > math.MaxInt64 {
			return float64(r.Uint()), nil
		}
		return int64(r.Uint()), nil
	case reflect.Float32: // 0.1 is stored as 0.1
		f, err := strconv.ParseFloat(strconv.FormatFloat(r.Float(), 'g', -1, 32), 64)
		if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
	case reflect.Float64:
		if f := r.Float(); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
	}
	return nil, fmt.Errorf(" is %s; expected a string, a finite number, true, false, null or a list of these",
		jsonobject.Show(v))
}
