package db

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
)

// ToValue converts an argument of a statement to nil, int64, float64, string or []byte, the types that all drivers bind
// alike (one driver silently ignores other types). Booleans become 0 and 1; a nil pointer and a nil []byte become NULL.
// It also returns the size of the data in bytes.
func ToValue(a any) (driver.Value, int, error) {
	switch v := a.(type) {
	case nil:
		return nil, 0, nil
	case string:
		return v, len(v), nil
	case []byte:
		if v == nil {
			return nil, 0, nil
		}
		return v, len(v), nil
	case int64:
		return v, 8, nil
	case int:
		return int64(v), 8, nil
	case float64:
		return v, 8, nil
	case bool:
		if v {
			return int64(1), 8, nil
		}
		return int64(0), 8, nil
	case driver.Valuer:
		if p := reflect.ValueOf(a); p.Kind() == reflect.Pointer && p.IsNil() {
			return nil, 0, nil
		}
		inner, err := v.Value()
		if err != nil {
			return nil, 0, err
		}
		if _, again := inner.(driver.Valuer); again {
			return nil, 0, fmt.Errorf("the Value of %T is another driver.Valuer", a)
		}
		return ToValue(inner)
	}
	return reflectValue(a)
}

// reflectValue converts the named and rarer types.
func reflectValue(a any) (driver.Value, int, error) {
	v := reflect.ValueOf(a)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, 0, nil
		}
		return ToValue(v.Elem().Interface())
	case reflect.Bool:
		return ToValue(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), 8, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > math.MaxInt64 {
			return nil, 0, fmt.Errorf("%d does not fit into 64 bits with a sign", v.Uint())
		}
		return int64(v.Uint()), 8, nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), 8, nil
	case reflect.String:
		return v.String(), v.Len(), nil
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return ToValue(v.Bytes())
		}
	}
	return nil, 0, fmt.Errorf("type %T cannot be stored; use an integer, float, string, []byte or bool", a)
}

var errNull = fmt.Errorf("%w: NULL; scan into a pointer to a pointer or a sql.Null", ErrMisfit)

// ScanValue stores one column, a value as [ToValue] returns it, in *dest, as [Rows] promises.
func ScanValue(src driver.Value, dest any) error {
	switch d := dest.(type) {
	case *int64:
		if v, ok := src.(int64); ok {
			*d = v
			return nil
		}
	case *int:
		if v, ok := src.(int64); ok && int64(int(v)) == v {
			*d = int(v)
			return nil
		}
	case *float64:
		switch v := src.(type) {
		case float64:
			*d = v
			return nil
		case int64:
			*d = float64(v)
			return nil
		}
	case *string:
		switch v := src.(type) {
		case string:
			*d = v
			return nil
		case []byte:
			*d = string(v)
			return nil
		}
	case *[]byte:
		switch v := src.(type) {
		case nil:
			*d = nil
			return nil
		case []byte: // the driver's own copy
			*d = v
			if v == nil { // a blob of no bytes, not NULL
				*d = []byte{}
			}
			return nil
		case string:
			*d = []byte(v)
			return nil
		}
	case *bool:
		if v, ok := src.(int64); ok {
			*d = v != 0
			return nil
		}
	case *any:
		*d = src
		return nil
	case sql.Scanner:
		return d.Scan(src)
	}
	return reflectScan(src, dest)
}

// reflectScan stores a column in a named or rarer type, or in a pointer that is nil for NULL.
func reflectScan(src driver.Value, dest any) error {
	p := reflect.ValueOf(dest)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("destination %T is not a pointer to a value", dest)
	}
	v := p.Elem()
	if v.Kind() == reflect.Pointer {
		if src == nil {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return ScanValue(src, v.Interface())
	}
	if src == nil {
		return errNull
	}
	switch s := src.(type) {
	case int64:
		switch {
		case v.CanInt() && !v.OverflowInt(s):
			v.SetInt(s)
			return nil
		case v.CanUint() && s >= 0 && !v.OverflowUint(uint64(s)):
			v.SetUint(uint64(s))
			return nil
		case v.Kind() == reflect.Bool:
			v.SetBool(s != 0)
			return nil
		case v.CanFloat():
			v.SetFloat(float64(s))
			return nil
		}
	case float64:
		if v.CanFloat() {
			v.SetFloat(s)
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(s)
			return nil
		}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(s))
			return nil
		}
	case []byte:
		if v.Kind() == reflect.String {
			v.SetString(string(s))
			return nil
		}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(s)
			return nil
		}
	}
	return fmt.Errorf("%w: %T value %v into %T", ErrMisfit, src, src, dest)
}
