"""Validates a JSON file against a JSON schema."""

import json
import sys

import jsonschema

with open(sys.argv[1]) as schema, open(sys.argv[2]) as document:
    jsonschema.validate(json.load(document), json.load(schema))
