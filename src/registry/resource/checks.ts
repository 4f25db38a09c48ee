import ipaddr from 'ipaddr.js';
import { pushAll } from '../../objects/lists.ts';
import { jsonEqual } from '../../objects/json.ts';
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  isValidLabelValue,
} from '../../objects/names.ts';
import { validateCsiDriverName } from '../storage/csidriver.ts';
import type { DeviceTaint, DeviceToleration } from '../../objects/types/resource.generated.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '../validation/field-errors.ts';

/** Names, lists and taints as resource.k8s.io has them (`apis/resource/validation`). */

/** In bytes. */
const maxPoolName = 253;
const maxDriverName = 63;
const maxId = 32;
const maxDomain = 63;

export function declared(errors: readonly FieldError[]): FieldError[] {
  return errors.map(declarative);
}

/** The errors of items; nothing but the number is judged where there are too many. */
export function validateList<T>(
  items: readonly T[] | null | undefined,
  max: number,
  path: string,
  validateItem: (item: T, path: string) => readonly FieldError[],
): FieldError[] {
  const all = items ?? [];
  if (all.length > max) return [declarative(tooMany(path, all.length, max))];
  return all.flatMap((item, i) => validateItem(item, `${path}[${i}]`));
}

/** The same of a list in which no two items have one key. */
export function validateSet<T>(
  items: readonly T[] | null | undefined,
  max: number,
  path: string,
  validateItem: (item: T, path: string) => readonly FieldError[],
  keyOf: (item: T) => string,
): FieldError[] {
  const all = items ?? [];
  const errors = validateList(all, max, path, validateItem);
  if (all.length > max) return errors;
  const seen = new Set<string>();
  all.forEach((item, i) => {
    const key = keyOf(item);
    if (seen.has(key)) errors.push(declarative(duplicate(`${path}[${i}]`, item)));
    seen.add(key);
  });
  return errors;
}

/** A driver's name: that of a CSI driver, required. */
export function validateDriver(name: string, path: string): FieldError[] {
  return name === '' ? [required(path)] : validateCsiDriverName(name, path);
}

/** The same where the rule is declared at the field. */
export function validateDeclaredDriver(name: string, path: string): FieldError[] {
  if (name === '') return [declarative(required(path))];
  const faults = isDNS1123Subdomain(name.toLowerCase()).map((fault) => invalid(path, name, fault));
  const isLong = Array.from(name).length > maxDriverName;
  return declared([
    ...faults,
    ...(isLong
      ? [
          {
            ...{ field: path, reason: 'FieldValueTooLong' as const },
            body: `Too long: may not be more than ${maxDriverName} characters`,
          },
        ]
      : []),
  ]);
}

/** DNS subdomains with slashes between them. */
export function validatePool(name: string, path: string): FieldError[] {
  if (name === '') return [required(path)];
  return [
    ...(Buffer.byteLength(name) > maxPoolName ? [tooLong(path, maxPoolName)] : []),
    ...name.split('/').flatMap((part) => isDNS1123Subdomain(part).map((fault) => invalid(path, part, fault))),
  ];
}

/** The same where the rule is declared at the field. */
export function validateDeclaredPool(name: string, path: string): FieldError[] {
  if (name === '') return [declarative(required(path))];
  return declared([
    ...(Buffer.byteLength(name) > maxPoolName ? [tooLong(path, maxPoolName)] : []),
    ...name.split('/').flatMap((part, i) => {
      if (part === '') return [invalid(path, name, `segment ${i}: must not be empty`)];
      return isDNS1123Subdomain(part).map((fault) => invalid(path, part, `segment ${i}: ${fault}`));
    }),
  ]);
}

export function validateLabel(name: string, path: string): FieldError[] {
  return isDNS1123Label(name).map((fault) => invalid(path, name, fault));
}

export function validateSubdomain(name: string, path: string): FieldError[] {
  return isDNS1123Subdomain(name).map((fault) => invalid(path, name, fault));
}

function validateLabelName(name: string, path: string): FieldError[] {
  return isQualifiedName(name).map((fault) => invalid(path, name, fault));
}

function validateLabelText(value: string, path: string): FieldError[] {
  return isValidLabelValue(value).map((fault) => invalid(path, value, fault));
}

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;
const identifierFault =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'" +
  ` (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')`;

function validateIdentifier(id: string, path: string): FieldError[] {
  return [
    ...(Buffer.byteLength(id) > maxId ? [tooLong(path, maxId)] : []),
    ...(identifier.test(id) ? [] : [invalid(path, id, identifierFault)]),
  ];
}

/** The name of an attribute or a capacity, with or without a domain. More than one slash is let through. */
export function validateQualifiedName(name: string, path: string): FieldError[] {
  const [first = '', second, ...more] = name.split('/');
  if (second === undefined) return validateIdentifier(first, path);
  if (more.length > 0) return [];
  return [
    ...(first === '' ? [invalid(path, '', 'the domain must not be empty')] : validateDriver(first, path)),
    ...(second === '' ? [invalid(path, '', 'the name must not be empty')] : validateIdentifier(second, path)),
  ];
}

/** One with a domain, as it is declared where an attribute is referred to. */
export function validateFullyQualifiedName(name: string, path: string): FieldError[] {
  const [first = '', second, ...more] = name.split('/');
  const noSlash = 'a fully qualified name must be a domain and a name separated by a slash';
  if (second === undefined) {
    return declared([...validateIdentifier(first, path), invalid(path, name, noSlash)]);
  }
  if (more.length > 0) return [];
  const prefix =
    first === ''
      ? [invalid(path, '', 'prefix must not be empty')]
      : [
          ...(Buffer.byteLength(first) > maxDomain ? [tooLong(path, maxDomain)] : []),
          ...isDNS1123Subdomain(first).map((fault) => invalid(path, first, `prefix: ${fault}`)),
        ];
  const rest =
    second === '' ? [invalid(path, '', 'name must not be empty')] : validateIdentifier(second, path);
  return declared([...prefix, ...rest]);
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const uuidFault = 'must be a lowercase UUID in 8-4-4-4-12 format';

export function validateUuid(value: string, path: string): FieldError[] {
  return uuid.test(value) ? [] : [declarative(invalid(path, value, uuidFault))];
}

/** An address of an interface with the length of its prefix, in canonical form. */
export function validateInterfaceAddress(value: string, path: string): FieldError[] {
  const [address = '', length = '', ...more] = value.split('/');
  const refused = 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)';
  if (more.length > 0 || !ipaddr.isValid(address) || !/^[0-9]{1,3}$/.test(length)) {
    return [invalid(path, value, refused)];
  }
  const parsed = ipaddr.process(address);
  const mapped = parsed.kind() === 'ipv4' && address.includes(':') ? 96 : 0;
  const bits = Number(length) - mapped;
  if (bits < 0 || bits > (parsed.kind() === 'ipv4' ? 32 : 128)) return [invalid(path, value, refused)];
  const canonical = `${parsed.toString()}/${bits}`;
  return value === canonical
    ? []
    : [invalid(path, value, `must be in canonical form (${JSON.stringify(canonical)})`)];
}

const taintEffects = ['NoExecute', 'NoSchedule', 'None'];

/** @param old of a taint that is being changed: an effect that stays is not judged again. */
export function validateTaint(
  { key, value = '', effect }: DeviceTaint,
  old: DeviceTaint | undefined,
  path: string,
): FieldError[] {
  const errors = validateLabelName(key, `${path}.key`);
  if (value !== '') pushAll(errors, validateLabelText(value, `${path}.value`));
  if (old?.effect === effect) return errors;
  if (effect === '') errors.push(declarative(required(`${path}.effect`)));
  else if (!taintEffects.includes(effect)) {
    errors.push(declarative(notSupported(`${path}.effect`, effect, taintEffects)));
  }
  return errors;
}

const operators = ['Equal', 'Exists'];

export function validateToleration(
  { key = '', operator = '', value = '', effect = '' }: DeviceToleration,
  path: string,
): FieldError[] {
  const errors = key === '' ? [] : declared(validateLabelName(key, `${path}.key`));
  const at = `${path}.operator`;
  if (operator === 'Exists') {
    if (value !== '') errors.push(invalid(`${path}.value`, value, 'must be empty for operator `Exists`'));
  } else if (operator === 'Equal') pushAll(errors, validateLabelText(value, `${path}.value`));
  else if (operator === '') errors.push(declarative(required(at)));
  else errors.push(declarative(notSupported(at, operator, operators)));
  if (effect !== '' && !taintEffects.includes(effect)) {
    errors.push(declarative(notSupported(`${path}.effect`, effect, taintEffects)));
  }
  return errors;
}

const maxBindingConditions = 4;

/** The conditions that a Pod's binding waits for, and those that end it: both or none. */
export function validateBindingConditions(
  conditions: readonly string[],
  failures: readonly string[],
  path: string,
): FieldError[] {
  const [at, failuresAt] = [`${path}.bindingConditions`, `${path}.bindingFailureConditions`];
  const errors = [
    ...validateList(conditions, maxBindingConditions, at, validateLabelName),
    ...validateList(failures, maxBindingConditions, failuresAt, validateLabelName),
  ];
  const [seen, failed] = [new Set<string>(), new Set<string>()];
  conditions.forEach((condition, i) => {
    if (seen.has(condition)) errors.push(duplicate(`${at}[${i}]`, condition));
    seen.add(condition);
  });
  failures.forEach((condition, i) => {
    if (failed.has(condition)) errors.push(duplicate(`${failuresAt}[${i}]`, condition));
    failed.add(condition);
    if (!seen.has(condition)) return;
    const detail = 'bindingFailureConditions must not overlap with bindingConditions';
    errors.push(invalid(`${failuresAt}[${i}]`, condition, detail));
  });
  if (conditions.length === 0 && failures.length > 0) {
    const detail = 'bindingConditions are required to use bindingFailureConditions';
    errors.push(invalid(at, null, detail));
  }
  if (failures.length === 0 && conditions.length > 0) {
    const detail = 'bindingFailureConditions are required to use bindingConditions';
    errors.push(invalid(failuresAt, null, detail));
  }
  return errors;
}

/** Parameters of a driver, or data of it: a JSON object of a limited size. */
export function validateRawObject(
  value: unknown,
  path: string,
  max: number,
  isStored: boolean,
): FieldError[] {
  if (value === undefined || value === null) return [required(path)];
  if (!isStored && Buffer.byteLength(JSON.stringify(value)) > max) return [tooLong(path, max)];
  if (typeof value === 'object' && !Array.isArray(value)) return [];
  return [invalid(path, '<value omitted>', 'must be a valid JSON object')];
}

/** The keys and values of a map. Long keys are cut in paths. */
export function validateMap<T>(
  map: Readonly<Record<string, T>> | null | undefined,
  max: number,
  maxKey: number,
  path: string,
  validateKey: (key: string, path: string) => readonly FieldError[],
  validateItem: (item: T, path: string) => readonly FieldError[],
): FieldError[] {
  const entries = Object.entries(map ?? {});
  if (entries.length > max) return [tooMany(path, entries.length, max)];
  return entries.flatMap(([key, item]) => [
    ...validateKey(key, path),
    ...validateItem(item, `${path}[${shortened(key, maxKey)}]`),
  ]);
}

function shortened(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  const left = max - 3;
  return `${text.slice(0, Math.ceil(left / 2))}...${text.slice(text.length - Math.floor(left / 2))}`;
}

/** Whether two lists or maps are the same; an absent one is as an empty one. */
export function isSame(value: object | null | undefined, old: object | null | undefined): boolean {
  const isEmpty = (part: object | null | undefined): boolean =>
    part === undefined || part === null || Object.keys(part).length === 0;
  return isEmpty(value) ? isEmpty(old) : jsonEqual(value, old);
}
