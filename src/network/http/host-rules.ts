import { compareRules, type HttpRule, wildcardOf } from './rule.ts';

/** The rules of one host. */
interface PathRules {
  readonly exact: Map<string, HttpRule[]>;
  readonly prefixes: Map<string, HttpRule[]>;
}

/**
 * Rules by host and path. A request is matched by the rules of its host, then of the wildcard that covers it, then of all
 * hosts; within a host by the longest path, Exact before Prefix before ImplementationSpecific, then by the oldest object.
 * A change costs what its own rules cost; a lookup one step for each `/` of the request, up to that of the longest rule.
 */
export class HostRules {
  readonly #hosts = new Map<string, PathRules>();
  /** The most slashes in a prefix so far: it bounds the cost of a request with 10,000 slashes. */
  #depth = 0;

  add(rule: HttpRule): void {
    let paths = this.#hosts.get(rule.host);
    if (paths === undefined) {
      paths = { exact: new Map(), prefixes: new Map() };
      this.#hosts.set(rule.host, paths);
    }
    const lists = rule.match === 'Exact' ? paths.exact : paths.prefixes;
    const list = lists.get(rule.path);
    if (list === undefined) lists.set(rule.path, [rule]);
    else insertSorted(list, rule);
    if (rule.match !== 'Exact') this.#depth = Math.max(this.#depth, rule.path.split('/').length);
  }

  /** @param rule the same object that was added. */
  delete(rule: HttpRule): void {
    const paths = this.#hosts.get(rule.host);
    if (paths === undefined) return;
    const lists = rule.match === 'Exact' ? paths.exact : paths.prefixes;
    const rest = (lists.get(rule.path) ?? []).filter((one) => one !== rule);
    if (rest.length === 0) lists.delete(rule.path);
    else lists.set(rule.path, rest);
    if (paths.exact.size + paths.prefixes.size === 0) this.#hosts.delete(rule.host);
  }

  /** Whether any rule is for this very host, a wildcard that covers it, or all hosts. */
  hasHost(host: string): boolean {
    return this.#candidates(host).length > 0;
  }

  /**
   * The first rule that matches and is accepted.
   *
   * @param host as {@link plainHost} returns it.
   * @param path without the query.
   */
  find(host: string, path: string, accept: (rule: HttpRule) => boolean): HttpRule | undefined {
    for (const paths of this.#candidates(host)) {
      const found = paths.exact.get(path)?.find(accept) ?? this.#findPrefix(paths.prefixes, path, accept);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #candidates(host: string): PathRules[] {
    const found: PathRules[] = [];
    for (const key of new Set([host, wildcardOf(host) ?? '', ''])) {
      const paths = this.#hosts.get(key);
      if (paths !== undefined) found.push(paths);
    }
    return found;
  }

  #findPrefix(
    prefixes: ReadonlyMap<string, HttpRule[]>,
    path: string,
    accept: (rule: HttpRule) => boolean,
  ): HttpRule | undefined {
    if (prefixes.size === 0) return undefined;
    const slashes: number[] = [];
    for (let at = path.indexOf('/'); at !== -1 && slashes.length <= this.#depth;) {
      slashes.push(at);
      at = path.indexOf('/', at + 1);
    }
    // The whole path counts where no slash was left out behind it.
    if (slashes.length <= this.#depth) {
      const whole = prefixes.get(path)?.find(accept);
      if (whole !== undefined) return whole;
    }
    for (const slash of slashes.reverse()) {
      const found =
        prefixes.get(path.slice(0, slash + 1))?.find(accept) ??
        prefixes.get(path.slice(0, slash))?.find(accept);
      if (found !== undefined) return found;
    }
    return prefixes.get('')?.find(accept);
  }
}

/** Into its place by {@link compareRules}: thousands of rules may have one host and path. */
function insertSorted(list: HttpRule[], rule: HttpRule): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = list[middle];
    if (other !== undefined && compareRules(other, rule) <= 0) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, rule);
}
