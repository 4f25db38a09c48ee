/**
 * The verdicts of NetworkPolicies and EgressFirewalls on a connection, with the object, rule and peer that decides.
 */
import type { PolicyConnection } from '../policy/connection.ts';
import { type FirewallSurroundings, firewallVerdict } from '../policy/egress-firewall.ts';
import type { Direction } from '../policy/network-policy.ts';
import { directionVerdict, type DirectionVerdict, type RuleMatch } from '../policy/policy-verdict.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Stage } from './stage.ts';

/** The verdict of the NetworkPolicies at one end of a connection. */
export function policyStage(view: ClusterView, connection: PolicyConnection, direction: Direction): Stage {
  const verdict = directionVerdict(view.policies, connection, direction);
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
