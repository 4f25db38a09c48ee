import type {
  MatchCondition,
  MutatingWebhook,
  RuleWithOperations,
} from '../../../objects/types/admissionregistration.generated.ts';
import {
  compileLabelSelector,
  type ParsedLabelSelector,
  matchesLabels,
} from '../../../objects/selectors/labels.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { isReviewVersion, type ReviewVersion, type WebhookClient, type WebhookNetwork } from './client.ts';
import {
  isReview,
  type WebhookConfiguration,
} from '../../../registry/admissionregistration/webhookconfiguration.ts';
import type { Logger } from 'pino';
import { listPrefix, type Storage, objectKey } from '../../storage/storage.ts';
import { notFound } from '../../../objects/status.ts';
import type { AdmissionAttributes } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { type IPFamily, parseAddress } from '../../../objects/address.ts';
import { parseAddressRange } from '../../../allocation/address-range.ts';
import { listAt, textAt } from '../../../objects/json.ts';
import type { DialPod } from '../../proxy/dial-pod.ts';
import { createEndpointResolver } from '../../proxy/endpoint-resolver.ts';

/**
 * - The webhooks of the stored configurations, ready to be called.
 * - Which webhooks are called for a write (apiserver `admission/plugin/webhook/generic` and `predicates`).
 */

/** One webhook of a stored configuration, ready to be matched and called. */
export interface Hook {
  /** Unique among all webhooks of a kind: configuration, index and name. */
  readonly id: string;
  readonly name: string;
  readonly rules: readonly RuleWithOperations[];
  /** `failurePolicy: Ignore`: a webhook that cannot be called is skipped. */
  readonly ignoresFailures: boolean;
  /** `matchPolicy: Equivalent`: also called for other versions of the resources of its rules. */
  readonly matchesEquivalents: boolean;
  readonly namespaceSelector: ParsedLabelSelector;
  readonly objectSelector: ParsedLabelSelector;
  /** The webhook is called only where all hold. */
  readonly conditions: readonly MatchCondition[];
  readonly supportsDryRun: boolean;
  /** `reinvocationPolicy: IfNeeded`. */
  readonly reinvokes: boolean;
  /** The first of `admissionReviewVersions` that this server supports. */
  readonly reviewVersion: ReviewVersion;
  readonly client: WebhookClient;
}

/** Makes the client of a webhook. */
export type ClientFactory = (webhook: MutatingWebhook) => WebhookClient;

/** The webhooks of a configuration, in order. */
function hooksOf(configuration: WebhookConfiguration, connect: ClientFactory): Hook[] {
  return (configuration.webhooks ?? []).map((webhook, index) => ({
    id: `${configuration.metadata.name ?? ''}/${index}/${webhook.name}`,
    name: webhook.name,
    rules: webhook.rules ?? [],
    ignoresFailures: webhook.failurePolicy === 'Ignore',
    matchesEquivalents: webhook.matchPolicy !== 'Exact',
    namespaceSelector: compileLabelSelector(webhook.namespaceSelector ?? {}),
    objectSelector: compileLabelSelector(webhook.objectSelector ?? {}),
    conditions: webhook.matchConditions ?? [],
    supportsDryRun: webhook.sideEffects === 'None' || webhook.sideEffects === 'NoneOnDryRun',
    reinvokes: webhook.reinvocationPolicy === 'IfNeeded',
    reviewVersion: webhook.admissionReviewVersions?.find(isReviewVersion) ?? 'v1',
    client: connect(webhook),
  }));
}

/** True for a configuration of either kind. */
function isWebhookConfiguration(object: KubeObject): object is WebhookConfiguration {
  return object.kind === 'ValidatingWebhookConfiguration' || object.kind === 'MutatingWebhookConfiguration';
}

const group = 'admissionregistration.k8s.io';

/**
 * The webhooks of all stored configurations of one kind, by the configuration's name and then in its order. A change of
 * a configuration makes new clients for it, and closes the connections of the former ones.
 */
export class WebhookConfigurations {
  readonly #storage: Storage;
  readonly #prefix: string;
  readonly #connect: ClientFactory;
  readonly #log: Logger;
  /** Called after every change. */
  readonly #changed: () => void;
  readonly #byKey = new Map<string, readonly Hook[]>();
  #hooks: readonly Hook[] = [];

  constructor(storage: Storage, plural: string, connect: ClientFactory, log: Logger, changed: () => void) {
    this.#storage = storage;
    this.#prefix = listPrefix(group, plural);
    this.#connect = connect;
    this.#log = log;
    this.#changed = changed;
  }

  /** In the order in which they are called. */
  get hooks(): readonly Hook[] {
    return this.#hooks;
  }

  /** Reads what is stored, and follows changes. */
  start(): void {
    const { items, revision } = this.#storage.list(this.#prefix);
    for (const { key, object } of items)
      this.#set(key, isWebhookConfiguration(object) ? hooksOf(object, this.#connect) : []);
    this.#storage.watch(this.#prefix, revision, ({ type, current: { key, object } }) => {
      const hooks =
        type !== 'DELETED' && isWebhookConfiguration(object) ? hooksOf(object, this.#connect) : [];
      this.#set(key, hooks);
    });
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all(this.#hooks.map(async ({ client }) => client.destroy()));
  }

  #set(key: string, hooks: readonly Hook[]): void {
    for (const { client, name } of this.#byKey.get(key) ?? []) {
      client
        .close()
        .catch((error: unknown) =>
          this.#log.debug({ err: error, webhook: name }, 'closing a webhook client failed'),
        );
    }
    if (hooks.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, hooks);
    const keys = [...this.#byKey.keys()].sort((a, b) => (a < b ? -1 : 1));
    this.#hooks = keys.flatMap((name) => this.#byKey.get(name) ?? []);
    this.#changed();
  }
}

/** A webhook with the resource in whose version it gets the object: the request's own, or an equivalent one. */
export interface WebhookInvocation {
  readonly hook: Hook;
  readonly resource: ServedResource;
}

/** The fields that select the requests for a webhook or policy. */
export type Matching = Pick<Hook, 'rules' | 'matchesEquivalents' | 'namespaceSelector' | 'objectSelector'>;

const configurationGroup = 'admissionregistration.k8s.io';

/**
 * Webhooks and policies are not asked about webhook configurations and admission policies, which it could be impossible
 * to remove otherwise, nor about reviews.
 */
export function isExempt({ resource: { definition } }: AdmissionAttributes): boolean {
  return definition.group === configurationGroup || isReview(definition.group, definition.plural);
}

/** The resource as which the rules match the request, without regard to the selectors; undefined when they do not. */
export function matchRules(
  core: ServerCore,
  hook: Pick<Matching, 'rules' | 'matchesEquivalents'>,
  attributes: AdmissionAttributes,
): ServedResource | undefined {
  const { resource } = attributes;
  if (hook.rules.some((rule) => ruleMatches(rule, attributes, resource))) return resource;
  if (!hook.matchesEquivalents) return undefined;
  const equivalents = core.resources.equivalentsOf(resource);
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

/**
 * The network to webhooks: a Service leads to one of its endpoints, or to the name of an ExternalName (kube-aggregator
 * `apiserver/resolvers.go`). Endpoints without a Pod count too: a webhook under development runs outside of the
 * cluster, and only administrators configure webhooks.
 */
export function webhookNetwork(
  core: ServerCore,
  dialPod: DialPod | undefined,
  lanCidrs: readonly string[],
  primaryFamily: IPFamily,
): WebhookNetwork {
  const get = (group: string, plural: string, namespace: string, name: string) =>
    core.storage.get(objectKey(group, plural, namespace, name))?.object;
  const list = (group: string, plural: string, namespace?: string) =>
    core.storage.list(listPrefix(group, plural, namespace)).items.map((item) => item.object);
  const endpoints = createEndpointResolver({
    get,
    list,
    primaryFamily,
    random: () => core.random(),
    addressesWithoutPods: true,
  });
  return {
    resolve: (namespace, name, port) => {
      const service = get('', 'services', namespace, name);
      if (service === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
      if (textAt(service, 'spec', 'type') === 'ExternalName') {
        return { host: textAt(service, 'spec', 'externalName'), port, isPod: false };
      }
      return endpoints.service(namespace, `https:${name}:${port}`);
    },
    isSimulated: (address) => isSimulated(address, list, lanCidrs),
    dialPod,
  };
}

/**
 * True for an address of the simulated network: of a Node, of a Node's Pod range, of a ServiceCIDR, or of the LAN. In
 * the machine's network the same address may be another host.
 *
 * @param list all objects of a cluster-scoped resource.
 */
function isSimulated(
  address: string,
  list: (group: string, plural: string) => readonly KubeObject[],
  lanCidrs: readonly string[],
): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  const inRange = (cidr: unknown): boolean => {
    const range = typeof cidr === 'string' ? parseAddressRange(cidr) : undefined;
    return range?.contains(parsed.family, parsed.value) ?? false;
  };
  const isAddress = (listed: unknown): boolean =>
    parseAddress(textAt(listed, 'address'))?.canonical === parsed.canonical;
  return (
    lanCidrs.some(inRange) ||
    list('networking.k8s.io', 'servicecidrs').some((cidr) => listAt(cidr, 'spec', 'cidrs').some(inRange)) ||
    list('', 'nodes').some(
      (node) =>
        listAt(node, 'spec', 'podCIDRs').some(inRange) || listAt(node, 'status', 'addresses').some(isAddress),
    )
  );
}
