import { describe, expect, it } from 'vitest';

import { parseYaml } from '../../../../../src/apiserver/schema/yaml/parse-yaml.ts';

describe('what is wrong with a YAML text', () => {
  it.each([
    ['a: [', 'line 1: did not find expected node content'],
    ['a: [1,\n', 'line 1: did not find expected node content'],
    ['{"a":', 'line 1: did not find expected node content'],
    ['a: [1, 2', "line 1: did not find expected ',' or ']'"],
    ['x: 1\na: {b: 1\n', "line 2: did not find expected ',' or '}'"],
    ['x: 1\na: [{b: 80}}', "line 1: did not find expected ',' or ']'"],
    ['a: {b: [1, 2}', "did not find expected ',' or ']'"],
    ['a: ["]", \'}\', 1}', "did not find expected ',' or ']'"],
    ['a: [}', 'did not find expected node content'],
    ['a: [1, 2\nb: 3', "line 1: did not find expected ',' or ']'"],
    ['x: 1\na: {b: 1\nc: 3\n', "line 2: did not find expected ',' or '}'"],
    ['a: {b: 1,\n  c: 3\nd: [1]}', "line 2: did not find expected ',' or '}'"],
    ['a: {b: "1",\n  c: http://x\n', "line 2: did not find expected ',' or '}'"],
    ['a: {"b":1,"c":2', "line 1: did not find expected ',' or '}'"],
    ['a: {b: c: d}', "did not find expected ',' or '}'"],
    ['a: ]', 'did not find expected node content'],
    ['a: ,', 'did not find expected node content'],
    ['a: \u0007', 'control characters are not allowed'],
    ['a: b: c', 'mapping values are not allowed in this context'],
    ['a: 1\n  b: 2', 'line 2: mapping values are not allowed in this context'],
    ['a: 1\nb', "line 3: could not find expected ':'"],
    ['a: 1\nb\nc: 2', "line 3: could not find expected ':'"],
    ['x: 1\na: - b', 'line 2: block sequence entries are not allowed in this context'],
    ['a:\n  b: 1\n c: 2', 'line 2: did not find expected key'],
    ['- a\nb: 1', "line 1: did not find expected '-' indicator"],
    ['a:\n\tb: 1', 'line 2: found character that cannot start any token'],
    ['a: "x\nb: "y"\n', 'line 1: did not find expected key'],
    ["a: 'x", 'found unexpected end of stream'],
    ['"a\\qb"', 'found unknown escape character'],
    ['a: *x', "unknown anchor 'x' referenced"],
  ])('%j: %s', (text, problem) => {
    expect(() => parseYaml(Buffer.from(text))).toThrow(`yaml: ${problem}`);
  });
});
