import { parseAddress } from '../../objects/address.ts';
import { dscpFor, egressChoice } from '../egress/egress-plan.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { PolicyConnection, Direction } from '../policy/network-policy.ts';
import type { ClusterView } from './cluster-view.ts';
import { type FirewallSurroundings, firewallVerdict } from '../policy/egress-firewall.ts';
import { directionVerdict, type DirectionVerdict, type RuleMatch } from '../policy/policy-verdict.ts';
import { joinKey } from '../../objects/meta.ts';
import type { Pod, Service } from '../../objects/types/core.generated.ts';
import type { HttpEndpoint } from '../http/backends.ts';
import { resolveAttachments } from '../attachments/attachments.ts';
import { AttachmentError } from '../attachments/ipam.ts';
import { egressRouterPlugin, readEgressRouter, redirectOf } from '../egress/egress-router.ts';

/** The stages of a connection's way through a cluster, in their order. */
export type StageName =
  | 'dns'
  /** Of a request of HTTP: the rule of its host and path, and the connection from the router to the backend. */
  | 'router'
  | 'announcement'
  | 'service'
  | 'egress NetworkPolicy'
  | 'EgressFirewall'
  | 'EgressIP'
  | 'EgressQoS'
  | 'ingress NetworkPolicy'
  | 'target port';

/** The result of one stage. */
export interface Stage {
  readonly stage: StageName;
  /** `pass`: the stage does not apply; `unknown`: the objects do not decide it. */
  readonly verdict: 'pass' | 'allow' | 'deny' | 'unknown';
  /** The object that decided: `NetworkPolicy shop/deny-all`. */
  readonly object?: string;
  /** Where in the object: `spec.ingress[0].from[1]`. */
  readonly field?: string;
  /** A sentence. */
  readonly message: string;
}

/** The source address of a connection out of the cluster, and the marks of its packets. */

/** The stages `EgressIP` and `EgressQoS`. Neither denies. @param masquerade the node is the client already. */
export function egressStages(
  view: ClusterView,
  connection: PolicyConnection,
  masquerade: boolean,
): readonly Stage[] {
  return [egressIPStage(view, connection, masquerade), qosStage(view, connection)];
}

function egressIPStage(
  view: ClusterView,
  { source, destination, destinationAddress }: PolicyConnection,
  masquerade: boolean,
): Stage {
  const stage = 'EgressIP';
  const pass = (message: string): Stage => ({ stage, verdict: 'pass', message });
  if (source.kind !== 'pod' || source.hostNetwork) return pass('EgressIPs are about Pods only');
  const address = parseAddress(destinationAddress);
  const ranges = view.firewallSurroundings(new Map()).clusterCidrs;
  const isInside = address === undefined || ranges.some((range) => cidrContains(range, address));
  if (destination.kind !== 'other' || isInside) return pass('the destination is inside of the cluster');
  if (masquerade) return pass('the Service makes the node the client');
  const { servedBy, standby } = egressChoice(source, view.egressRules);
  if (servedBy === undefined) return pass('no EgressIP with an address selects the Pod');
  const exits = servedBy.exits.filter(({ family }) => family === address.family);
  const object = `EgressIP ${servedBy.name}`;
  const [first] = exits;
  if (first === undefined)
    return { stage, verdict: 'pass', object, message: `it has no ${address.family} address` };
  const way = exits.map((exit) => `${exit.address} of ${exit.node}`).join(', or ');
  const others = standby.length === 0 ? '' : `; standing by: ${standby.join(', ')}`;
  return { stage, verdict: 'allow', object, message: `the connection leaves from ${way}${others}` };
}

function qosStage(view: ClusterView, { source, destinationAddress }: PolicyConnection): Stage {
  const stage = 'EgressQoS';
  const rules = source.kind === 'pod' ? view.qos(source.namespace) : undefined;
  const address = parseAddress(destinationAddress);
  if (source.kind !== 'pod' || rules === undefined || address === undefined) {
    return { stage, verdict: 'pass', message: 'the source has none' };
  }
  const object = `EgressQoS ${rules.namespace}/default`;
  if (rules.problems.length > 0) {
    return { stage, verdict: 'pass', object, message: `not in force: ${rules.problems.join('; ')}` };
  }
  const found = dscpFor(source, address, rules);
  if (found === undefined) return { stage, verdict: 'pass', object, message: 'no rule matches' };
  const message = `packets are marked with DSCP ${found.dscp}`;
  return { stage, verdict: 'allow', object, field: `spec.egress[${found.rule}]`, message };
}

/**
 * The verdicts of NetworkPolicies and EgressFirewalls on a connection, with the object, rule and peer that decides.
 */

/** The verdict of the NetworkPolicies at one end of a connection. */
export function policyStage(view: ClusterView, connection: PolicyConnection, direction: Direction): Stage {
  const subject = direction === 'egress' ? connection.source : connection.destination;
  const verdict = directionVerdict(view.policiesOf(subject), connection, direction);
  const stage = `${direction} NetworkPolicy` as const;
  const first = verdict.policies.find(({ rule }) => rule !== undefined) ?? verdict.policies[0];
  if (first === undefined) return { stage, verdict: 'pass', message: passMessages[verdict.reason] };
  return {
    stage,
    verdict: verdict.allowed ? 'allow' : 'deny',
    object: `NetworkPolicy ${first.policy}`,
    field: fieldOf(direction, first.rule),
    message: verdict.allowed
      ? `a rule matches${first.rule?.port === undefined ? '' : `, by ports[${first.rule.port}]`}`
      : `${verdict.policies.length === 1 ? 'the policy isolates' : `${verdict.policies.length} policies isolate`} the Pod, and no rule matches`,
  };
}

const passMessages: Record<DirectionVerdict['reason'], string> = {
  NotAPod: 'policies are about Pods only',
  HostNetwork: 'policies do not apply to Pods in the network of their node',
  SamePod: 'a Pod always reaches itself',
  OwnNode: 'a node always reaches its own Pods',
  NotIsolated: 'no policy isolates the Pod',
  Allowed: 'a rule matches',
  NoRuleMatches: 'no rule matches',
};

function fieldOf(direction: Direction, rule: RuleMatch | undefined): string {
  if (rule === undefined) return `spec.${direction}`;
  const member = direction === 'ingress' ? 'from' : 'to';
  const peer = rule.peer === undefined ? '' : `.${member}[${rule.peer}]`;
  return `spec.${direction}[${rule.index}]${peer}`;
}

/** The stage of the source's EgressFirewall. @param names addresses of its DNS names, as far as they were found. */
export function firewallStage(
  view: ClusterView,
  { source, destinationAddress, protocol, port }: PolicyConnection,
  names: FirewallSurroundings['names'],
): Stage {
  const stage = 'EgressFirewall';
  const firewall = source.kind === 'pod' && !source.hostNetwork ? view.firewall(source.namespace) : undefined;
  if (firewall === undefined) return { stage, verdict: 'pass', message: 'the source has none' };
  const surroundings = view.firewallSurroundings(names);
  const verdict = firewallVerdict(firewall, { destinationAddress, protocol, port }, surroundings);
  const object = `EgressFirewall ${firewall.key}`;
  if (verdict.notFound !== undefined) {
    const { to, allow } = firewall.rules[verdict.notFound] ?? {};
    const name = to?.kind === 'name' ? to.name : '';
    return {
      ...{ stage, verdict: 'unknown', object, field: `spec.egress[${verdict.notFound}]` },
      message: `${name} is not found from here: the rule ${allow === true ? 'allows' : 'denies'} if the address is one of it`,
    };
  }
  switch (verdict.reason) {
    case 'NotInForce':
      return { stage, verdict: 'pass', object, message: `not in force: ${firewall.problems.join('; ')}` };
    case 'InClusterNetwork':
      return { stage, verdict: 'pass', object, message: 'no rule is about the network of Pods' };
    case 'NoRuleMatches':
      return { stage, verdict: 'allow', object, message: 'no rule matches' };
    case 'RuleMatches': {
      const field = `spec.egress[${verdict.rule}]`;
      const message = `the first rule that matches ${verdict.allowed ? 'allows' : 'denies'}`;
      return { stage, verdict: verdict.allowed ? 'allow' : 'deny', object, field, message };
    }
  }
}

/** Where the Pod of an egress router leads a connection on to. */

/** The stage `target port` of a connection to the Pod of an egress router; undefined for other Pods. */
export function routerStage(
  view: ClusterView,
  pod: Pod,
  { destinationAddress, protocol, port }: Pick<PolicyConnection, 'destinationAddress' | 'protocol' | 'port'>,
): Stage | undefined {
  const attachment = attachmentsOf(view, pod).find(({ config }) => config.plugin.type === egressRouterPlugin);
  if (attachment === undefined) return undefined;
  const plan = readEgressRouter(attachment.config.plugin.written);
  if ('problem' in plan || parseAddress(destinationAddress)?.family !== plan.family) return undefined;
  const stage = 'target port';
  const object = `NetworkAttachmentDefinition ${attachment.network}`;
  const found = redirectOf(plan, protocol, port);
  if (found.verdict === 'rejected') {
    const message = `the egress router has no rule for ${port}/${protocol}, and no fallback`;
    return { stage, verdict: 'deny', object, message };
  }
  const { destination } = found;
  const host = destination.includes(':') ? `[${destination}]` : destination;
  const by = found.by === 'rule' ? 'a rule' : 'its fallback';
  const message = `the egress router leads on to ${host}:${found.port} by ${by}, from ${plan.address}`;
  return { stage, verdict: 'allow', object, message };
}

/** None for a Pod whose networks cannot be attached. */
function attachmentsOf(view: ClusterView, pod: Pod): ReturnType<typeof resolveAttachments> {
  try {
    return resolveAttachments(pod, (namespace, name) => view.attachment(joinKey(namespace, name)));
  } catch (error) {
    if (error instanceof AttachmentError) return [];
    throw error;
  }
}

/** What is asked of a router: `https://a.example/path`. */
export interface HttpRequest {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  /** Of the router. */
  readonly port: number;
  readonly path: string;
}

/** What a router does with a request. */
export interface HttpPlan {
  /** What decides, before the packet leaves. */
  readonly stages: readonly Stage[];
  /** The Service of the router, and its port; undefined: it is not known, or the router refuses. */
  readonly router: { readonly service: Service; readonly port: number } | undefined;
  /** Where the router leads to; undefined: it answers itself, with a redirect. */
  readonly backends: readonly HttpEndpoint[] | undefined;
}
