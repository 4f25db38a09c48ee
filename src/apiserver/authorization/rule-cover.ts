/** Whether some rules grant all that others grant (`component-helpers/auth/rbac/validation`). PURE. */
import type { WholeRule } from './rbac.ts';

/** One verb on one resource, name or path: as small as a rule can be. */
type Atom = WholeRule;

/**
 * Atoms that rules are taken apart into at most: a rule of 3 MiB has more than fit in memory. Rules that come to more
 * are looked at as they are, each to be covered by one that is held.
 */
const maxAtoms = 50_000;

/** The permissions of `wanted` that `held` lacks, joined to rules again. */
export function missingRules(held: readonly WholeRule[], wanted: readonly WholeRule[]): WholeRule[] {
  let count = 0;
  for (const rule of wanted) count += countAtoms(rule);
  const parts = count > maxAtoms ? wanted : wanted.flatMap(atomsOf);
  return compact(parts.filter((part) => !held.some((rule) => covers(rule, part))));
}

/** How kube-apiserver prints a rule in errors (`rbacv1helpers.CompactString`). */
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

function countAtoms({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: WholeRule): number {
  const named = apiGroups.length * resources.length * Math.max(1, resourceNames.length);
  return verbs.length * (named + nonResourceURLs.length);
}

function atomsOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: WholeRule): Atom[] {
  const none = { apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };
  const names = resourceNames.length === 0 ? [[]] : resourceNames.map((name) => [name]);
  const atoms: Atom[] = [];
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        for (const name of names) {
          atoms.push({
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
    for (const verb of verbs) atoms.push({ ...none, verbs: [verb], nonResourceURLs: [url] });
  }
  return atoms;
}

function covers(rule: WholeRule, atom: Atom): boolean {
  return (
    hasAll(rule.verbs, atom.verbs) &&
    hasAll(rule.apiGroups, atom.apiGroups) &&
    coversResources(rule.resources, atom.resources) &&
    coversNames(rule.resourceNames, atom.resourceNames) &&
    coversPaths(rule.nonResourceURLs, atom.nonResourceURLs)
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

/** No names are all names. */
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

/** Atoms of one resource and name become one rule with all their verbs. */
function compact(atoms: readonly Atom[]): WholeRule[] {
  const byResource = new Map<string, WholeRule & { readonly verbs: string[] }>();
  for (const atom of atoms) {
    const { apiGroups, resources, resourceNames, nonResourceURLs, verbs } = atom;
    const key = JSON.stringify(
      nonResourceURLs.length > 0 ? [nonResourceURLs, verbs] : [apiGroups, resources, resourceNames],
    );
    const known = byResource.get(key);
    if (known === undefined) byResource.set(key, { ...atom, verbs: [...verbs] });
    else for (const verb of verbs) if (!known.verbs.includes(verb)) known.verbs.push(verb);
  }
  return [...byResource.values()];
}
