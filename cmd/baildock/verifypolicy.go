package main

import (
	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger/witness"
)

// askedFor is what the flags of verify and the file of --policy ask for, the key of --key apart. A flag
// doesn't change what a policy file says: the two together would be a third policy that nobody wrote down.
func askedFor(c *cli.Context) (policy verify.Policy, err error) {
	if path := c.String("policy"); path != "" {
		if policy, err = readPolicy(path); err != nil {
			return policy, err
		}
	}
	if c.IsSet("require") && policy.Require != "" {
		return policy, givenTwice("require", "require")
	}
	if level := c.String("require"); level != "" && policy.Require == "" {
		if policy.Require, err = verify.ParseLevel(level); err != nil {
			return policy, usage("--require: %w", err)
		}
	}
	if c.IsSet("allow-withheld") {
		if policy.AllowWithheld != nil {
			return policy, givenTwice("allow-withheld", "allow_withheld")
		}
		if policy.AllowWithheld, err = withholdFlag(c, "allow-withheld"); err != nil {
			return policy, err
		}
	}
	if path := c.String("checkpoint"); path != "" {
		if policy.Kept != nil {
			return policy, givenTwice("checkpoint", "checkpoint")
		}
		if policy.Kept, err = keptNote(path); err != nil {
			return policy, err
		}
	}
	if policy.Witnesses != nil && policy.Kept == nil {
		return policy, usage("--policy says whose cosignatures a checkpoint must have: give the checkpoint with --checkpoint")
	}
	return policy, nil
}

func givenTwice(flag, member string) error {
	return usage("--%s and %q of the policy file say the same thing: leave one of them out", flag, member)
}

// readPolicy reads a verification policy, or a witness policy alone.
func readPolicy(path string) (verify.Policy, error) {
	text, err := readBounded(path, verify.MaxPolicy)
	if err != nil {
		return verify.Policy{}, err
	}
	var policy verify.Policy
	if witness.IsPolicy(text) {
		var w witness.Policy
		w, err = witness.ParsePolicy(text)
		policy.Witnesses = &w
	} else {
		policy, err = verify.ParsePolicy(text)
	}
	if err != nil {
		return policy, fail(exitUsage, "policy_unreadable", "policy file %q: %w", path, err).
			hint("baildock schema verification-policy says what one holds")
	}
	return policy, nil
}
