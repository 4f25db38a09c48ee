/**
 * Writes src/apiserver/discovery/openapi/components.generated.json: the OpenAPI component schemas of hack/openapi with the
 * descriptions of `descriptions.json`, which are our own. There, "" is the component itself and the entry "*" holds
 * for members of every component that has no text of its own for them.
 *
 * Run: node hack/generate-openapi.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { isRecord, type JsonRecord } from '../src/objects/json.ts';

const here = new URL('.', import.meta.url);
const output = new URL('../src/apiserver/discovery/openapi/components.generated.json', here);

function readRecord(file: string): JsonRecord {
  const value: unknown = JSON.parse(readFileSync(new URL(file, here), 'utf8'));
  if (!isRecord(value)) throw new Error(`${file} is not an object`);
  return value;
}

function record(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

/** kube-apiserver puts descriptions in front. */
function described(schema: unknown, description: unknown): unknown {
  const bare = record(schema);
  return typeof description === 'string' ? { description, ...bare } : bare;
}

const schemas = { ...readRecord('openapi/schemas.json'), ...readRecord('openapi/more-schemas.json') };
const descriptions = readRecord('openapi/descriptions.json');
const everywhere = record(descriptions['*']);
const unknown = new Set(Object.keys(descriptions));
unknown.delete('*');

const components: JsonRecord = {};
for (const name of Object.keys(schemas).sort()) {
  const schema = record(schemas[name]);
  const texts = record(descriptions[name]);
  unknown.delete(name);
  const properties = record(schema['properties']);
  for (const member of Object.keys(texts)) {
    if (member !== '' && !Object.hasOwn(properties, member)) throw new Error(`${name} has no ${member}`);
  }
  const members = Object.entries(properties).map(([member, property]): [string, unknown] => [
    member,
    described(property, texts[member] ?? everywhere[member]),
  ]);
  components[name] = described(
    members.length === 0 ? schema : { ...schema, properties: Object.fromEntries(members) },
    texts[''] ?? schema['description'],
  );
}
if (unknown.size > 0) throw new Error(`there are no components ${[...unknown].join(', ')}`);
writeFileSync(output, `${JSON.stringify(components)}\n`);
