import { hasFormat } from '../../objects/formats.ts';
import {
  isDNS1035Label,
  isQualifiedName,
  isValidLabelValue,
  nameIsDNS1035Label,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
} from '../../objects/names.ts';
import { type Library, member, overload0, overload1, overload2, stringParam } from '../overload.ts';
import { listType, optionalType, stringType } from '../types.ts';
import { noValue, type OpaqueValue, Optional, PlainList } from '../values.ts';
import { instance, opaque } from './opaque.ts';
import { parseUrl } from './urls.ts';
import { walk } from '../walk.ts';

const formatType = opaque('kubernetes.NamedFormat');

class FormatValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = formatType;
  readonly name: string;
  /** The errors of a text. */
  readonly faults: (value: string) => readonly string[];

  constructor(name: string, faults: (value: string) => readonly string[]) {
    this.name = name;
    this.faults = faults;
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && other.name === this.name;
  }
}

function schemaFormat(format: string, fault: string): (value: string) => readonly string[] {
  return (value) => (hasFormat(format, value) ? [] : [fault]);
}

const formats: ReadonlyMap<string, FormatValue> = new Map(
  Object.entries({
    dns1123Label: (value: string) => nameIsDNSLabel(value, false),
    dns1123Subdomain: (value: string) => nameIsDNSSubdomain(value, false),
    dns1035Label: isDNS1035Label,
    qualifiedName: isQualifiedName,
    dns1123LabelPrefix: (value: string) => nameIsDNSLabel(value, true),
    dns1123SubdomainPrefix: (value: string) => nameIsDNSSubdomain(value, true),
    dns1035LabelPrefix: (value: string) => nameIsDNS1035Label(value, true),
    labelValue: isValidLabelValue,
    uri: (value: string) => {
      const parsed = parseUrl(value);
      return typeof parsed === 'string' ? [`parse ${JSON.stringify(value)}: ${parsed}`] : [];
    },
    uuid: schemaFormat('uuid', 'does not match the UUID format'),
    byte: schemaFormat('byte', 'invalid base64'),
    date: schemaFormat('date', 'invalid date'),
    datetime: schemaFormat('date-time', 'invalid datetime'),
  }).map(([name, faults]) => [name, new FormatValue(name, faults)]),
);

const format = instance(formatType, FormatValue);

/** Named formats (`apiserver/pkg/cel/library/format.go`). */
export const formatFunctions: Library = [
  [
    'format.named',
    [
      overload1(stringParam, optionalType(formatType), (name) => {
        const found = formats.get(name);
        return found === undefined ? noValue : new Optional(found);
      }),
    ],
  ],
  ...[...formats].map(([name, value]): Library[number] => [
    `format.${name}`,
    [overload0(formatType, () => value)],
  ]),
  [
    'validate',
    [
      member(
        overload2(format, stringParam, optionalType(listType(stringType)), ({ faults }, value, meter) => {
          walk(meter, value, value);
          const found = faults(value);
          return found.length === 0 ? noValue : new Optional(new PlainList(found));
        }),
      ),
    ],
  ],
];
