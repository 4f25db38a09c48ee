/** Reads the body of an apply: a configuration in YAML or JSON. */
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { badRequest } from '../../../objects/status-errors.ts';
import type { ExpectedKind } from '../../schema/decode-body.ts';
import { withoutRawNumbers } from '../../schema/decode-leaf.ts';
import { parseJson } from '../../schema/json/parse-json.ts';
import { JsonSyntaxError, YamlSyntaxError } from '../../schema/json/go-json.ts';
import { parseYaml } from '../../schema/yaml/parse-yaml.ts';
import { checkJsonSize } from '../../schema/size-limits.ts';
import { jsonTypeName, parseVersion, VersionKindError } from '../../schema/version-kind.ts';

/**
 * The configuration, and the strict errors of repeated keys. JSON is YAML too, but has a parser of its own.
 *
 * @throws {StatusError} 400, or 413 for too many values.
 */
export function parseConfig(bytes: Buffer): { config: JsonRecord; duplicates: string | undefined } {
  const parsed = parseFastJson(bytes) ?? parseSlowYaml(bytes);
  const { value, duplicates } = parsed;
  if (value === null || value === undefined) return { config: {}, duplicates };
  if (isRecord(value)) return { config: value, duplicates };
  throw badRequest(
    `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${jsonTypeName(value)} into Go value of type map[string]interface {}`,
  );
}

function parseFastJson(bytes: Buffer): { value: unknown; duplicates: undefined } | undefined {
  if (bytes[0] !== 0x7b) return undefined;
  checkJsonSize(bytes);
  try {
    const { value, repeated, hasRawNumbers } = parseJson(bytes);
    if (repeated !== undefined) return undefined;
    return { value: hasRawNumbers ? withoutRawNumbers(value) : value, duplicates: undefined };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}

function parseSlowYaml(bytes: Buffer): { value: unknown; duplicates: string | undefined } {
  try {
    const { value, duplicates, hasRawNumbers } = parseYaml(bytes);
    return { value: hasRawNumbers ? withoutRawNumbers(value) : value, duplicates };
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error;
    throw badRequest(`error decoding YAML: error converting YAML to JSON: ${error.message}`);
  }
}

/** An applied object must have the kind and version of the request. @throws {StatusError} 400 */
export function checkConfigKind(config: JsonRecord, expected: ExpectedKind): void {
  const { apiVersion, kind } = config;
  const kindText = typeof kind === 'string' ? kind : '';
  const { group, version } = splitVersion(typeof apiVersion === 'string' ? apiVersion : '');
  if (group !== expected.group || version !== expected.version || kindText !== expected.kind) {
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${kindText}`);
  }
  const metadata = config['metadata'];
  if (isRecord(metadata) && Array.isArray(metadata['managedFields'])) {
    throw badRequest('metadata.managedFields must be nil');
  }
}

function splitVersion(apiVersion: string): { group: string; version: string } {
  try {
    return parseVersion(apiVersion);
  } catch (error) {
    if (error instanceof VersionKindError) return { group: '', version: '' };
    throw error;
  }
}
