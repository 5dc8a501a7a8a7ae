// Package redact takes sensitive values out of bytes before anything hashes or keeps them
// (law 9, req L5). It does no I/O.
//
//	r, err := redact.New(token, password)
//	s := r.Stream()
//	kept := append(kept, s.Push(chunk)...)   // any number of chunks, cut anywhere
//	kept = append(kept, s.Close()...)
//	s.Redacted()                             // whether anything was taken out
//
// A secret is found in each of these forms, at any place and across chunks:
//
//   - its plain bytes;
//   - base64 (RFC 4648 sections 4 and 5), with or without padding, alone or inside longer data at
//     any of the three offsets; characters that hold only some bits of the secret go with it;
//   - hexadecimal, all digits lower or all upper case;
//   - both of these broken over lines by LF or CRLF, as command line tools print them;
//   - percent-encoding (RFC 3986 section 2.1), whatever set of bytes the encoder escapes and in
//     either case, and its form variant with `+` for a space;
//   - a JSON string (RFC 8259 section 7), whatever the encoder escapes and however: short escapes,
//     `\u00XX`, longer code points and surrogate pairs; also `\xXX`, `\UXXXXXXXX` and `\'`, which
//     other languages' string literals use, and `\u00XX` for single bytes of a value that is no ASCII.
//
// Compressed, encrypted, doubly encoded or otherwise transformed copies are not found, nor are
// pieces of a secret: this is a stated limit of what a contained run claims.
//
// Every byte that belongs to any form of any secret goes, overlaps included; each unbroken run of
// such bytes becomes one Marker. So the result doesn't depend on how the text was cut into chunks.
//
// A Stream holds back only what may still turn out to be the beginning of a form: never more than
// Redactor.Longest bytes less one. Time is linear in the text: each form's patterns are an
// Aho–Corasick automaton, fed with what the bytes decode to. Where escapes can be read from more
// than one alignment, each that has matched something is followed, up to a bound; beyond it, what the
// oldest has matched is taken out, a secret or not.
package redact
