import { parseServiceCidr, type ServiceCidr } from '../../src/allocation/address-range.ts';
import { isRecord } from '../../src/objects/json.ts';
import { parseAddress } from '../../src/objects/address.ts';

/** What a masker must know of its case before the first answer. */
export interface MaskContext {
  /** The case's own namespace: becomes `${ns}` again. */
  readonly namespace: string;
  /** The requests as recorded, references unresolved, as one text: what they name stays as it is. */
  readonly named: string;
  /** Prefix of names made by generateName in this case, where the case has one. */
  readonly generated?: string | undefined;
  /** The cluster's Service CIDRs: addresses in them are picked by the server. */
  readonly serviceRanges: readonly string[];
}

const uidPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const timePattern = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;
const wholeTimePattern = new RegExp(`^${timePattern.source}$`);
const ipv4Pattern = /(?<![\w.:])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\/|\.\d)/g;
const ipv6Pattern = /(?<![\w.:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?!\w|\/|\.\d)/g;
/** The alphabet of generateName's suffixes (apimachinery `util/rand`). */
const suffixPattern = '[bcdfghjklmnpqrstvwxz2456789]{5}';
/** Go prints its reference time in error messages. */
const goLayout = '2006-01-02T15:04:05Z';

/**
 * Replaces the values that a server picks by tokens, as the recorder did. One masker serves one case, because it
 * learns: a nodePort or clusterIP that an answer showed is also masked in the texts of later answers.
 */
export class Masker {
  readonly #context: MaskContext;
  readonly #ranges: readonly ServiceCidr[];
  readonly #picked = new Map<string, string>(); // text of a value that the server picked -> its token

  constructor(context: MaskContext) {
    this.#context = context;
    this.#ranges = context.serviceRanges.flatMap((text) => parseServiceCidr(text) ?? []);
  }

  /** Notes what an answer shows to be picked by the server. Call it for every answer, kept or not. */
  learn(value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.learn(item);
    if (!isRecord(value)) return;
    for (const [key, item] of Object.entries(value)) {
      if (isPort(key, item)) this.#note(String(item), '<nodePort>');
      else if (key === 'clusterIP') this.#noteAddress(item);
      else if (key === 'clusterIPs' && Array.isArray(item))
        for (const address of item) this.#noteAddress(address);
      else this.learn(item);
    }
  }

  /** A copy of an answer with tokens. `managedFields` and `selfLink` are dropped. */
  mask(value: unknown): unknown {
    // A value that is a time is masked even where a request named it; within texts it is not.
    if (typeof value === 'string') return wholeTimePattern.test(value) ? '<time>' : this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.mask(item));
    if (!isRecord(value)) return value;
    const masked: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      if (key === 'managedFields' || key === 'selfLink') continue;
      masked.push([this.text(key), this.#member(key, item, value)]);
    }
    return Object.fromEntries(masked);
  }

  /** A text with tokens. */
  text(text: string): string {
    const { namespace, generated } = this.#context;
    let masked = text.replace(uidPattern, (uid) => this.#token(uid, '<uid>'));
    masked = masked.replace(timePattern, (time) => (time === goLayout ? time : this.#token(time, '<time>')));
    masked = masked.replace(ipv4Pattern, (address) => this.#address(address));
    masked = masked.replace(ipv6Pattern, (found) => this.#colonAddress(found));
    masked = masked.replace(/(?<![\w.])\d{4,5}(?![\w.])/g, (digits) => this.#picked.get(digits) ?? digits);
    if (generated !== undefined) {
      masked = masked.replace(
        new RegExp(`${escape(generated)}${suffixPattern}(?![\\w-])`, 'g'),
        `${generated}<suffix>`,
      );
    }
    return masked.replaceAll(namespace, '${ns}');
  }

  #member(key: string, item: unknown, holder: Record<string, unknown>): unknown {
    if (key === 'resourceVersion' && typeof item === 'string')
      return item === '0' || item === '' ? item : '<rv>';
    if (key === 'continue' && typeof item === 'string' && item !== '') return '<continue>';
    if (key === 'remainingItemCount') return '<count>';
    if (isPort(key, item)) return this.#picked.get(String(item)) ?? item;
    if (key === 'name' && typeof item === 'string' && typeof holder['generateName'] === 'string') {
      // Of a long generateName only the first 58 characters are used.
      const prefix = holder['generateName'].slice(0, 58);
      if (new RegExp(`^${escape(prefix)}${suffixPattern}$`).test(item)) return `${this.text(prefix)}<suffix>`;
    }
    return this.mask(item);
  }

  #address(text: string): string {
    const known = this.#picked.get(text);
    if (known !== undefined) return known;
    const parsed = parseAddress(text);
    if (parsed?.canonical !== text) return text;
    if (!this.#ranges.some(({ range }) => range.contains(parsed.family, parsed.value))) return text;
    return this.#token(text, parsed.family === 'IPv4' ? '<ip4>' : '<ip6>');
  }

  /** The colon of a sentence ("IP fd00::5: taken") is not part of the address. */
  #colonAddress(text: string): string {
    return /[^:]:$/.test(text) ? `${this.#address(text.slice(0, -1))}:` : this.#address(text);
  }

  #noteAddress(value: unknown): void {
    if (typeof value !== 'string') return;
    const parsed = parseAddress(value);
    if (parsed !== undefined) this.#note(value, parsed.family === 'IPv4' ? '<ip4>' : '<ip6>');
  }

  #note(text: string, token: string): void {
    if (!this.#isNamed(text)) this.#picked.set(text, token);
  }

  #token(text: string, token: string): string {
    return this.#isNamed(text) ? text : token;
  }

  #isNamed(text: string): boolean {
    const edges: [string, string] = text.includes(':')
      ? ['(?<![0-9a-fA-F:])', '(?![0-9a-fA-F]|:[0-9a-fA-F:])']
      : ['(?<![\\w.])', '(?!\\w|\\.\\d)'];
    return new RegExp(edges.join(escape(text))).test(this.#context.named);
  }
}

function isPort(key: string, value: unknown): value is number {
  return (key === 'nodePort' || key === 'healthCheckNodePort') && typeof value === 'number' && value > 0;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\-]/g, '\\$&');
}
