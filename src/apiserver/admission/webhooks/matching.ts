/** Which webhooks are called for a write (apiserver `admission/plugin/webhook/generic` and `predicates`). */
import type { RuleWithOperations } from '../../../objects/types/admissionregistration.generated.ts';
import { matchesLabels } from '../../../objects/labels/labels.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { notFound } from '../../../objects/status-errors.ts';

import type { AdmissionAttributes } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { objectKey } from '../../storage/storage.ts';
import type { Hook } from './hook.ts';

/** A webhook with the resource in whose version it gets the object: the request's own, or an equivalent one. */
export interface WebhookInvocation {
  readonly hook: Hook;
  readonly resource: ServedResource;
}

/** The fields that select the requests for a webhook or policy. */
export type Matching = Pick<Hook, 'rules' | 'matchesEquivalents' | 'namespaceSelector' | 'objectSelector'>;

const configurationGroup = 'admissionregistration.k8s.io';

/**
 * Webhooks are not called for webhook configurations and admission policies: otherwise it could be impossible to remove
 * them.
 */
export function isExempt({ resource }: AdmissionAttributes): boolean {
  return resource.definition.group === configurationGroup;
}

/** The resource as which the rules match the request, without regard to the selectors; undefined when they do not. */
export function matchRules(
  core: ServerCore,
  hook: Matching,
  attributes: AdmissionAttributes,
): ServedResource | undefined {
  const { resource } = attributes;
  if (hook.rules.some((rule) => ruleMatches(rule, attributes, resource))) return resource;
  if (!hook.matchesEquivalents) return undefined;
  const equivalents = equivalentsOf(core, resource);
  if (equivalents.length === 0) return undefined;
  for (const rule of hook.rules) {
    const found = equivalents.find((other) => ruleMatches(rule, attributes, other));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * True when both selectors match: the one of the namespace, and the one of the object, new or old.
 *
 * @throws {StatusError} 404 when the namespace does not exist.
 */
export function matchSelectors(core: ServerCore, hook: Matching, attributes: AdmissionAttributes): boolean {
  return matchesNamespace(core, hook, attributes) && matchesObject(hook, attributes);
}

function ruleMatches(
  rule: RuleWithOperations,
  attributes: AdmissionAttributes,
  { definition }: ServedResource,
): boolean {
  const { group, version, plural } = definition;
  return (
    isInScope(rule.scope ?? '*', attributes) &&
    listMatches(rule.operations, attributes.operation) &&
    listMatches(rule.apiGroups, group) &&
    listMatches(rule.apiVersions, version) &&
    (rule.resources ?? []).some((pattern) => resourceMatches(pattern, plural, attributes.subresource))
  );
}

function listMatches(values: readonly string[] | undefined, value: string): boolean {
  return values?.some((candidate) => candidate === '*' || candidate === value) ?? false;
}

/** `pods`, `pods/status`, `*`, or a star on either side of a slash. */
function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const slash = pattern.indexOf('/');
  const main = slash < 0 ? pattern : pattern.slice(0, slash);
  const part = slash < 0 ? '' : pattern.slice(slash + 1);
  return (main === '*' || main === plural) && (part === '*' || part === subresource);
}

function isInScope(scope: string, { resource, namespace }: AdmissionAttributes): boolean {
  const isCluster = isNamespaces(resource) || !resource.definition.namespaced || namespace === '';
  return scope === '*' || (scope === 'Cluster') === isCluster;
}

function isNamespaces({ definition }: ServedResource): boolean {
  return definition.group === '' && definition.plural === 'namespaces';
}

/** Other resources with the same objects: other versions of a custom resource, Events of the other group. */
function equivalentsOf(core: ServerCore, resource: ServedResource): ServedResource[] {
  const { group, plural } = storedResource(resource);
  return core.resources.all().filter((other) => {
    if (other === resource) return false;
    const stored = storedResource(other);
    return stored.group === group && stored.plural === plural;
  });
}

function storedResource({ definition }: ServedResource): { readonly group: string; readonly plural: string } {
  return definition.storedAs ?? definition;
}

function matchesNamespace(
  core: ServerCore,
  { namespaceSelector }: Matching,
  attributes: AdmissionAttributes,
): boolean {
  if (namespaceSelector !== 'nothing' && namespaceSelector.length === 0) return true;
  const { resource, namespace } = attributes;
  if (isNamespaces(resource)) {
    const own = attributes.subresource === '' ? attributes.object : undefined;
    return matchesLabels(namespaceSelector, (own ?? attributes.oldObject)?.metadata.labels);
  }
  if (!resource.definition.namespaced || namespace === '') return true;
  const stored = core.storage.getForUpdate(objectKey('', 'namespaces', '', namespace));
  if (stored === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
  return matchesLabels(namespaceSelector, stored.object.metadata.labels);
}

function matchesObject({ objectSelector }: Matching, { object, oldObject }: AdmissionAttributes): boolean {
  if (objectSelector !== 'nothing' && objectSelector.length === 0) return true;
  const matches = (candidate: KubeObject | undefined) =>
    candidate !== undefined && matchesLabels(objectSelector, candidate.metadata.labels);
  return matches(object) || matches(oldObject);
}
