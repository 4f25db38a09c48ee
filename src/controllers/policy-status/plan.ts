import { compareText } from '../../objects/formats/go-text.ts';
import type { ValidatingAdmissionPolicy } from '../../objects/types/admissionregistration.generated.ts';

/** A kind in a version. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A resource with the versions in which it is served. */
export interface KnownResource {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly versions: readonly string[];
}

const maxKinds = 10;

/** True for a policy whose present generation was not checked yet. */
export function needsCheck({
  metadata,
  status,
}: Pick<ValidatingAdmissionPolicy, 'metadata' | 'status'>): boolean {
  return (metadata.generation ?? 0) > (status.observedGeneration ?? 0);
}

/**
 * The kinds that the expressions of a policy are checked for, at most ten of a rule, sorted (typechecking.go
 * typesToCheck). Rules with wildcards and subresources are not checked.
 */
export function kindsToCheck(
  { spec }: Pick<ValidatingAdmissionPolicy, 'spec'>,
  resources: readonly KnownResource[],
): readonly Kind[] {
  const found = new Map<string, Kind>();
  for (const { apiGroups, apiVersions, resources: named } of spec.matchConstraints?.resourceRules ?? []) {
    const groups = [...(apiGroups ?? [])].sort();
    const versions = [...(apiVersions ?? [])].sort();
    if ([...groups, ...versions].some((name) => name.includes('*'))) continue;
    const plurals = (named ?? []).filter((name) => !/[*/]/.test(name)).sort();
    const kinds = groups.flatMap((group) =>
      versions.flatMap((version) =>
        plurals.flatMap((plural) => kindsOf({ group, version, plural }, resources)),
      ),
    );
    for (const kind of kinds.slice(0, maxKinds)) {
      found.set(`${kind.group}/${kind.version}/${kind.kind}`, kind);
    }
    if (kinds.length >= maxKinds) break;
  }
  return [...found.values()].sort(
    (a, b) =>
      compareText(a.group, b.group) || compareText(a.version, b.version) || compareText(a.kind, b.kind),
  );
}

/** True when the policy may match kinds of a group version. */
export function asksFor(
  { spec }: Pick<ValidatingAdmissionPolicy, 'spec'>,
  group: string,
  version: string,
): boolean {
  const rules = spec.matchConstraints?.resourceRules ?? [];
  return rules.some(({ apiGroups, apiVersions }) => {
    const groups = apiGroups ?? [];
    return (groups.includes(group) || groups.includes('')) && apiVersions?.includes(version) === true;
  });
}

/** RESTMapper's KindsFor: the group "" stands for any group. */
function kindsOf(
  wanted: { readonly group: string; readonly version: string; readonly plural: string },
  resources: readonly KnownResource[],
): Kind[] {
  const { group: wantedGroup, version, plural: wantedPlural } = wanted;
  return resources.flatMap(({ group, plural, kind, versions }) =>
    plural === wantedPlural.toLowerCase() &&
    (wantedGroup === '' || group === wantedGroup) &&
    versions.includes(version)
      ? [{ group, version, kind }]
      : [],
  );
}

/** The kind that `paramKind` names; undefined for a policy without one. */
export function paramKindOf({ spec }: Pick<ValidatingAdmissionPolicy, 'spec'>): Kind | undefined {
  const { apiVersion = '', kind = '' } = spec.paramKind ?? {};
  if (apiVersion === '' || kind === '') return undefined;
  const [first = '', second] = apiVersion.split('/');
  return second === undefined ? { group: '', version: first, kind } : { group: first, version: second, kind };
}
