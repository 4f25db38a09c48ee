/**
 * Writes src/apiserver/schema/protobuf/protobuf-always.generated.json: which fields of a message Go writes though they are
 * empty. Those are what gogo's generated marshalers write outside of every condition: scalars that are no pointers, and
 * messages that are held by value. They are read from the generated.pb.go files of k8s.io/api, apimachinery and
 * apiextensions-apiserver; what is not below that folder is in openapi/more-protobuf-always.json, in the form of the
 * output: the numbers of the fields of each message that has some.
 *
 * Run: node hack/read-protobuf-always.ts /usr/share/gocode/src/k8s.io   (Debian: golang-k8s-api-dev and its like)
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import fields from '../src/apiserver/schema/protobuf/protobuf.generated.json' with { type: 'json' };
import more from './openapi/more-protobuf-always.json' with { type: 'json' };

const output = new URL('../src/apiserver/schema/protobuf/protobuf-always.generated.json', import.meta.url);
const known = new Set(Object.keys(fields));

/** `apimachinery/pkg/apis/meta/v1/generated.pb.go` holds messages of `meta.v1`. */
function packageOf(file: string): string {
  return file
    .replace(/\/generated\.pb\.go$/, '')
    .replace(/^(api|apimachinery\/pkg\/apis|apimachinery\/pkg|apiextensions-apiserver\/pkg\/apis)\//, '')
    .replaceAll('/', '.');
}

const marshaler = /^func \(m \*(\w+)\) MarshalToSizedBuffer\(dAtA \[\]byte\) \(int, error\) \{$([^]*?)^\}$/gm;
/** A tag outside of every condition: its bytes, the last one first. */
const tags = /(?:^\ti--\n^\tdAtA\[i\] = 0x[0-9a-f]+$\n?)+/gm;

/** The numbers of the fields that a marshaler always writes, in ascending order. */
function alwaysWritten(body: string): number[] {
  const numbers = Array.from(body.matchAll(tags), ([tag]) => {
    const bytes = Array.from(tag.matchAll(/0x([0-9a-f]+)/g), ([, byte = '']) => Number.parseInt(byte, 16));
    const key = bytes.reduce((value, byte) => value * 128 + (byte & 127), 0);
    return Math.floor(key / 8);
  });
  return numbers.sort((a, b) => a - b);
}

const [, , sources] = process.argv;
if (sources === undefined) throw new Error('name the folder of k8s.io');
const found = new Map<string, readonly number[]>();
for (const file of globSync('{api,apimachinery,apiextensions-apiserver}/**/generated.pb.go', {
  cwd: sources,
})) {
  const prefix = packageOf(file);
  for (const [, name = '', body = ''] of readFileSync(`${sources}/${file}`, 'utf8').matchAll(marshaler)) {
    const message = `${prefix}.${name}`;
    const numbers = alwaysWritten(body);
    if (known.has(message) && numbers.length > 0) found.set(message, numbers);
  }
}
for (const [message, numbers] of Object.entries(more)) found.set(message, numbers);
const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(output, `${JSON.stringify(Object.fromEntries(sorted))}\n`);
