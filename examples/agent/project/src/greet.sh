#!/bin/sh
cat "$(dirname "$0")/greeting.txt"
