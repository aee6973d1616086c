"""Checks JSON against the schemas in schemas/v1 with Debian's python3-jsonschema.

Usage: python3 validate.py SCHEMA_DIRECTORY < requests > answers

A request is one line of JSON: {"file": "a vector's path"} or
{"contract": "name", "text": "JSON as text"}. The answer is one line:
{"valid": true}, {"valid": false, "why": "..."}. Vectors are read here and not
by whoever asks, so that this program sees their large integers unrounded.
Exit code 3 means that python3-jsonschema is not installed.
"""

import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.stderr.write("python3-jsonschema is not installed\n")
    sys.exit(3)


def refuse_constant(name):
    raise ValueError(name + " is not JSON")


def parse(text):
    return json.loads(text, parse_constant=refuse_constant)


def validators(directory):
    for path in sorted(pathlib.Path(directory).glob("*.schema.json")):
        schema = parse(path.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(schema)
        yield path.name[: -len(".schema.json")], Draft202012Validator(schema)


def answer(known, request):
    if "file" in request:
        vector = parse(pathlib.Path(request["file"]).read_text(encoding="utf-8"))
        error = next(known["test-vector"].iter_errors(vector), None)
        if error is not None:
            raise ValueError("%s is no test vector: %s" % (request["file"], error.message))
        given = vector["given"]
        contract = given["contract"]
        text = given.get("text")
        value = None if text is not None else given["input"]
    else:
        contract, text, value = request["contract"], request["text"], None
    if text is not None:
        try:
            value = parse(text)
        except ValueError as error:
            return {"valid": False, "why": "not JSON: %s" % error}
    error = next(known[contract].iter_errors(value), None)
    if error is None:
        return {"valid": True}
    return {"valid": False, "why": "%s: %s" % (error.json_path, error.message[:200])}


def main():
    known = dict(validators(sys.argv[1]))
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(answer(known, json.loads(line))) + "\n")


main()
