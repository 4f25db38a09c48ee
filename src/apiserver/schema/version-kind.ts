/** Finds apiVersion and kind of a body, as apimachinery's SimpleMetaFactory and gvkWithDefaults do. */
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from './json/go-json.ts';

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A body whose apiVersion or kind cannot be read; the message is apimachinery's. */
export class VersionKindError extends Error {
  override readonly name = 'VersionKindError';
}

/** `v1`, or `discovery.k8s.io/v1`. */
export function versionText({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Kind and version of a body, completed from `defaults`. @throws {VersionKindError} */
export function interpretKind(value: unknown, defaults: GroupVersionKind): GroupVersionKind {
  const { apiVersion, kind } = readVersionKind(value);
  const { group, version } = parseVersion(apiVersion);
  if (group === '' && version === '') {
    return { group: defaults.group, version: defaults.version, kind: kind === '' ? defaults.kind : kind };
  }
  return {
    group,
    version: version === '' && group === defaults.group ? defaults.version : version,
    kind: kind === '' ? defaults.kind : kind,
  };
}

/** Splits an apiVersion. @throws {VersionKindError} when it has more than one slash. */
export function parseVersion(apiVersion: string): { group: string; version: string } {
  const cut = apiVersion.indexOf('/');
  if (cut < 0) return { group: '', version: apiVersion };
  if (apiVersion === '/') return { group: '', version: '' };
  if (apiVersion.includes('/', cut + 1)) {
    throw new VersionKindError(`unexpected GroupVersion string: ${apiVersion}`);
  }
  return { group: apiVersion.slice(0, cut), version: apiVersion.slice(cut + 1) };
}

const goStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/** encoding/json matches names without regard to case here, unlike in the body itself. */
function readVersionKind(value: unknown): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' };
  if (value === null || value === undefined) return found;
  if (!isRecord(value) || value instanceof RawNumber) {
    throw parseError(`cannot unmarshal ${jsonTypeName(value)} into Go value of type ${goStruct}`);
  }
  for (const key of Object.keys(value)) {
    if (key.length !== 4 && key.length !== 10) continue;
    const lower = key.toLowerCase();
    const name = lower === 'kind' ? 'kind' : lower === 'apiversion' ? 'apiVersion' : undefined;
    const member = value[key];
    if (name === undefined || member === null) continue;
    if (typeof member !== 'string') {
      throw parseError(
        `cannot unmarshal ${jsonTypeName(member)} into Go struct field .${name} of type string`,
      );
    }
    found[name] = member;
  }
  return found;
}

function parseError(text: string): VersionKindError {
  return new VersionKindError(`couldn't get version/kind; json parse error: json: ${text}`);
}

/** How Go names the type of a JSON value in its errors. */
export function jsonTypeName(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number' || value instanceof RawNumber) return 'number';
  return typeof value === 'string' ? 'string' : 'object';
}
