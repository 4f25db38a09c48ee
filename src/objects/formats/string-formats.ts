import { parseAddress, parseCidr } from '../address.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../names.ts';

const patterns: ReadonlyMap<string, RegExp> = new Map([
  ['date-time', /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:?\d{2})$/],
  ['email', /^[^\s@]{1,64}@[^\s@]{1,255}$/],
  [
    'hostname',
    /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$/,
  ],
  ['uuid', /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$/],
  ['uuid3', /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?3[0-9a-fA-F]{3}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$/],
  ['uuid4', /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?4[0-9a-fA-F]{3}-?[89abAB][0-9a-fA-F]{3}-?[0-9a-fA-F]{12}$/],
  ['uuid5', /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?5[0-9a-fA-F]{3}-?[89abAB][0-9a-fA-F]{3}-?[0-9a-fA-F]{12}$/],
  ['mac', /^[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}$/],
  ['hexcolor', /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/],
  ['duration', /^-?(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d|w))+$/],
]);

/** Formats without a pattern here: `hasFormat` decides them in code, or accepts any string. */
const others = [
  'date',
  'bsonobjectid',
  'byte',
  'uri',
  'ipv4',
  'ipv6',
  'cidr',
  'isbn',
  'isbn10',
  'isbn13',
  'creditcard',
  'ssn',
  'rgbcolor',
  'password',
  'k8s-short-name',
  'k8s-long-name',
];
const recognized = new Set([...others, ...patterns.keys()].map(normalized));

/** Formats are compared without dashes. */
function normalized(format: string): string {
  return format.replaceAll('-', '');
}

/** The formats of numbers, by type. */
const numeric: ReadonlyMap<string, readonly string[]> = new Map([
  ['integer', ['int32', 'int64']],
  ['number', ['float', 'double']],
]);

/**
 * The format that values of a type are checked for, "" where it is not checked (apiextensions
 * `apiserver/validation/formats.go`).
 *
 * @param type "" when the schema names none.
 */
export function checkedFormat(type: string, format: string): string {
  const known =
    type === '' || type === 'string'
      ? recognized.has(normalized(format))
      : numeric.get(type)?.includes(format) === true;
  return known ? format : '';
}

/** True when a string has the given format, or the format is not one that is checked (`kube-openapi` strfmt). */
export function hasFormat(format: string, text: string): boolean {
  switch (format) {
    case 'ipv4':
    case 'ipv6': {
      const address = parseAddress(text);
      return address?.family === (format === 'ipv4' ? 'IPv4' : 'IPv6');
    }
    case 'cidr':
      return parseCidr(text) !== undefined;
    case 'uri':
      return URL.canParse(text) || (text.startsWith('/') && !/[\s\x7f]/.test(text));
    case 'date': {
      // Go parses dates where a pattern would accept 31 February.
      const time = Date.parse(`${text}T00:00:00Z`);
      return !Number.isNaN(time) && new Date(time).toISOString().startsWith(`${text}T`);
    }
    case 'byte':
      // govalidator's Base64: of any length, not empty. No group is repeated, so that a megabyte takes milliseconds.
      return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
    case 'k8s-short-name':
      return isDNS1123Label(text).length === 0;
    case 'k8s-long-name':
      return isDNS1123Subdomain(text).length === 0;
    default: {
      const pattern = patterns.get(format === 'datetime' ? 'date-time' : format);
      return pattern === undefined || (text.length <= 4096 && pattern.test(text));
    }
  }
}
