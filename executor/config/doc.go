// Package config reads the file of a contained run: one YAML document with the blocks sandbox and
// contained_execution (req L1 to L4). docs/contained-config.md is its manual for users; the JSON
// Schema contained-config in package schemas states the same rules, as far as a schema can.
//
//	c, err := config.Load("baildock.yaml", bytes)
//	env, err := c.ResolveEnvironment(os.LookupEnv)   // before anything is prepared
//	os.Stdout.Write(c.Print())                       // what holds, without values
//
// The loader does no I/O. It refuses what it doesn't know to the letter: unknown and repeated fields,
// anchors, aliases, merge keys, tags, a second document, other types, other spellings of numbers,
// anything out of range. Each reason names the field's path, all of them are given at once, and none
// repeats a value of the environment.
//
// What a file may say in only one way (no privileges, evidence outside the copy) is checked and then
// has no field in Config: nothing later can turn it.
package config
