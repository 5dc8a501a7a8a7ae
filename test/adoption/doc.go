// Package adoption holds the examples that people copy to what the documentation says of them. It has tests
// only.
package adoption
