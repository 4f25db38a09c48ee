/** Which permissions some rules lack of those that others grant (`component-helpers/auth/rbac/validation`). PURE. */
import type { WholeRule } from './rbac.ts';

/** A rule with one verb on one resource, name or path (`BreakdownRule`). */
type Subrule = WholeRule;

/**
 * The limit of subrules, since those of a rule of 3 MiB do not fit in memory. Beyond it rules are not broken down, and
 * each must be covered by a single rule.
 */
const maxSubrules = 50_000;

/** The permissions of `wanted` that `held` lacks, joined into rules again. */
export function missingRules(held: readonly WholeRule[], wanted: readonly WholeRule[]): WholeRule[] {
  let count = 0;
  for (const rule of wanted) count += countSubrules(rule);
  const parts = count > maxSubrules ? wanted : wanted.flatMap(subrulesOf);
  return compact(parts.filter((part) => !held.some((rule) => covers(rule, part))));
}

/** A rule as kube-apiserver prints it in errors (`rbacv1helpers.CompactString`). */
export function describeRule({
  apiGroups,
  resources,
  nonResourceURLs,
  resourceNames,
  verbs,
}: WholeRule): string {
  const part = (name: string, values: readonly string[]) =>
    values.length === 0 ? [] : [`${name}:${quoted(values)}`];
  const parts = [
    ...part('APIGroups', apiGroups),
    ...part('Resources', resources),
    ...part('NonResourceURLs', nonResourceURLs),
    ...part('ResourceNames', resourceNames),
    ...part('Verbs', verbs),
  ];
  return `{${parts.join(', ')}}`;
}

/** A list as Go's %q prints it. */
export function quoted(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
}

function countSubrules({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: WholeRule): number {
  const named = apiGroups.length * resources.length * Math.max(1, resourceNames.length);
  return verbs.length * (named + nonResourceURLs.length);
}

function subrulesOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: WholeRule): Subrule[] {
  const none = { apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };
  const names = resourceNames.length === 0 ? [[]] : resourceNames.map((name) => [name]);
  const subrules: Subrule[] = [];
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        for (const name of names) {
          subrules.push({
            ...none,
            verbs: [verb],
            apiGroups: [group],
            resources: [resource],
            resourceNames: name,
          });
        }
      }
    }
  }
  for (const url of nonResourceURLs) {
    for (const verb of verbs) subrules.push({ ...none, verbs: [verb], nonResourceURLs: [url] });
  }
  return subrules;
}

function covers(rule: WholeRule, subrule: Subrule): boolean {
  return (
    hasAll(rule.verbs, subrule.verbs) &&
    hasAll(rule.apiGroups, subrule.apiGroups) &&
    coversResources(rule.resources, subrule.resources) &&
    coversNames(rule.resourceNames, subrule.resourceNames) &&
    coversPaths(rule.nonResourceURLs, subrule.nonResourceURLs)
  );
}

function hasAll(held: readonly string[], wanted: readonly string[]): boolean {
  return held.includes('*') || wanted.every((value) => held.includes(value));
}

function coversResources(held: readonly string[], wanted: readonly string[]): boolean {
  if (hasAll(held, wanted)) return true;
  return wanted.every((resource) => {
    const slash = resource.indexOf('/');
    return held.includes(resource) || (slash >= 0 && held.includes(`*${resource.slice(slash)}`));
  });
}

/** A rule without names covers all names. */
function coversNames(held: readonly string[], wanted: readonly string[]): boolean {
  if (held.length === 0) return true;
  return wanted.length > 0 && wanted.every((name) => held.includes(name));
}

function coversPaths(held: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((path) =>
    held.some(
      (pattern) => pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1))),
    ),
  );
}

/** Joins the subrules of one resource and name into one rule with all their verbs. */
function compact(subrules: readonly Subrule[]): WholeRule[] {
  const byResource = new Map<string, WholeRule & { readonly verbs: string[] }>();
  for (const subrule of subrules) {
    const { apiGroups, resources, resourceNames, nonResourceURLs, verbs } = subrule;
    const key = JSON.stringify(
      nonResourceURLs.length > 0 ? [nonResourceURLs, verbs] : [apiGroups, resources, resourceNames],
    );
    const known = byResource.get(key);
    if (known === undefined) byResource.set(key, { ...subrule, verbs: [...verbs] });
    else for (const verb of verbs) if (!known.verbs.includes(verb)) known.verbs.push(verb);
  }
  return [...byResource.values()];
}
