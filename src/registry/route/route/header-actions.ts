/** The rules of a Route's header actions (library-go `route/validation` validateHeaders). */
import { pushAll } from '../../../objects/lists.ts';
import type { RouteHTTPHeader, RouteSpec } from '../../../objects/types/route.generated.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  required,
} from '../../validation/field-errors.ts';

const maxActions = 20;
const maxName = 255;
const maxValue = 16_384;
const kept = ['strict-transport-security', 'proxy', 'cookie', 'set-cookie'];
const namePattern = /^[-!#$%&'*+.0-9A-Z^_`a-z|~]+$/;
const nameMessage = 'name must be a valid HTTP header name as defined in RFC 2616 section 4.2';

/** The two lists, whose values may name parts of the message by different words. */
const lists = [
  { list: 'response', fetcher: 'res' },
  { list: 'request', fetcher: 'req' },
] as const;

/** HAProxy's format of values: text, `%%`, and samples such as `%[req.hdr(Host),lower]`. */
const valuePatterns = {
  req: valuePattern('req'),
  res: valuePattern('res'),
};

function valuePattern(fetcher: string): RegExp {
  const flags = String.raw`(?:\{[-+]?[QXE](?:,[-+]?[QXE])*\})?`;
  const sample = String.raw`\[(?:${fetcher}\.hdr\([0-9A-Za-z-]+\)|ssl_c_der)(?:,(?:lower|base64))*\]`;
  return new RegExp(String.raw`^(?:%(?:%|${flags}${sample})|[^%\p{Cc}]|[\u0080-\u009f])+$`, 'u');
}

function valueMessage(fetcher: string): string {
  return `Either header value provided is not in correct format or the converter specified is not allowed. The dynamic header value  may use HAProxy's %[] syntax and otherwise must be a valid HTTP header value as defined in https://datatracker.ietf.org/doc/html/rfc7230#section-3.2 Sample fetchers allowed are ${fetcher}.hdr, ssl_c_der. Converters allowed are lower, base64.`;
}

export function validateHeaderActions({ httpHeaders, tls }: RouteSpec): FieldError[] {
  const { actions = {} } = httpHeaders ?? {};
  const errors: FieldError[] = [];
  const hasActions = lists.some(({ list }) => (actions[list] ?? []).length > 0);
  if (hasActions && tls?.termination === 'passthrough') {
    const message = 'only edge and re-encrypt routes are supported for providing customized headers.';
    errors.push(invalid('spec.tls.termination', tls.termination, message));
  }
  for (const { list, fetcher } of lists) {
    const headers = actions[list] ?? [];
    const path = `spec.httpHeaders.actions.${list}`;
    if (headers.length > maxActions) {
      errors.push(invalid(path, headers, `${list} headers list can't exceed ${maxActions} items`));
      continue;
    }
    const seen = new Set<string>();
    headers.forEach((header, i) => {
      if (seen.has(header.name)) errors.push(duplicate(`${path}[${i}].name`, header.name));
      seen.add(header.name);
      pushAll(errors, validateHeader(header, `${path}[${i}]`, fetcher));
    });
  }
  return errors;
}

function validateHeader(
  { name, action }: RouteHTTPHeader,
  path: string,
  fetcher: 'req' | 'res',
): FieldError[] {
  const errors: FieldError[] = [];
  const nameError = headerNameError(name, `${path}.name`);
  if (nameError !== undefined) errors.push(nameError);
  const { type, set } = action;
  if (type !== 'Set' && type !== 'Delete') {
    errors.push(invalid(`${path}.action.type`, type, 'type must be "Set" or "Delete"'));
  }
  if ((type === 'Set') !== (set !== undefined)) {
    const message = 'set is required when type is Set, and forbidden otherwise';
    errors.push(required(`${path}.action.set`, message));
  }
  if (set === undefined) return errors;
  const at = `${path}.action.set.value`;
  if (set.value === '') errors.push(required(at));
  else if (Buffer.byteLength(set.value) > maxValue) {
    errors.push(invalid(at, set.value, `value exceeds the maximum length, which is ${maxValue}`));
  } else if (!valuePatterns[fetcher].test(set.value)) {
    errors.push(invalid(at, set.value, valueMessage(fetcher)));
  }
  return errors;
}

function headerNameError(name: string, path: string): FieldError | undefined {
  if (name === '') return required(path);
  if (Buffer.byteLength(name) > maxName) {
    return invalid(path, name, `name exceeds the maximum length, which is ${maxName}`);
  }
  if (kept.includes(name.toLowerCase())) {
    const message = `the following headers may not be modified using this API: ${kept.join(', ')}`;
    return forbiddenField(path, message);
  }
  return namePattern.test(name) ? undefined : invalid(path, name, nameMessage);
}
