/** EgressQoS of OVN-Kubernetes: the DSCP value of what Pods of a namespace send (`go-controller/pkg/ovn/egressqos.go`). */
import { type IPFamily, type ParsedAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { matchesLabels, type ParsedLabelSelector, readLabelSelector } from '../../objects/labels/labels.ts';
import type { EgressQoS } from '../../objects/types/ovn.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { PolicyPod } from '../policy/connection.ts';

/** One rule. The first that matches decides: no packet is marked by two. */
export interface QoSRule {
  /** 0 to 63. */
  readonly dscp: number;
  /** Undefined: every destination of both families, inside of the cluster too. */
  readonly to: ParsedCidr | undefined;
  /** Undefined: all Pods of the namespace. */
  readonly pods: ParsedLabelSelector | undefined;
}

/** One EgressQoS, parsed; with problems, none of its rules is in force. */
export interface QoSRules {
  readonly namespace: string;
  readonly rules: readonly QoSRule[];
  readonly problems: readonly string[];
}

/** A destination, and the DSCP value of what is sent there. */
export type QoSMark = Pick<QoSRule, 'dscp' | 'to'>;

/** More have no priority left (`maxEgressQoSRules` of OVN-Kubernetes). */
const maxRules = 1000;
/** The only name that an EgressQoS may have. */
const onlyName = 'default';

/** Reads an EgressQoS: one rule that does not parse keeps all of them out of force. Undefined: its name makes it none. */
export function qosRules({ metadata, spec }: EgressQoS): QoSRules | undefined {
  if (metadata.name !== onlyName) return undefined;
  const problems: string[] = [];
  if (spec.egress.length > maxRules) {
    problems.push(`cannot create EgressQoS with ${spec.egress.length} rules - maximum is ${maxRules}`);
  }
  const rules = spec.egress.slice(0, maxRules).map(({ dscp, dstCIDR, podSelector }, index): QoSRule => {
    const to = dstCIDR === undefined ? undefined : parseCidr(dstCIDR);
    if (dstCIDR !== undefined && to === undefined) problems.push(`invalid CIDR address: ${dstCIDR}`);
    const path = `spec.egress[${index}].podSelector`;
    const pods = readLabelSelector(podSelector, { path, consequence: 'no rule is in force' }, problems);
    return { dscp, to, pods };
  });
  return { namespace: metadata.namespace ?? '', rules: problems.length > 0 ? [] : rules, problems };
}

/** The DSCP value of what a Pod sends to an address, and the rule that decides; undefined: it stays as the Pod sets it. */
export function dscpFor(
  pod: PolicyPod,
  destination: ParsedAddress,
  { rules }: Pick<QoSRules, 'rules'>,
): { readonly dscp: number; readonly rule: number } | undefined {
  if (pod.hostNetwork) return undefined;
  const rule = rules.findIndex(
    ({ to, pods }) => isSelected(pods, pod) && (to === undefined || cidrContains(to, destination)),
  );
  const found = rules[rule];
  return found === undefined ? undefined : { dscp: found.dscp, rule };
}

/** The marks of a Pod's packets of a family, in order: the first with the destination decides. */
export function marksOf(
  pod: PolicyPod,
  family: IPFamily,
  { rules }: Pick<QoSRules, 'rules'>,
): readonly QoSMark[] {
  if (pod.hostNetwork) return [];
  const marks: QoSMark[] = [];
  for (const { dscp, to, pods } of rules) {
    if (!isSelected(pods, pod) || (to !== undefined && to.family !== family)) continue;
    marks.push({ dscp, to });
    if (to === undefined) break;
  }
  return marks;
}

function isSelected(selector: ParsedLabelSelector | undefined, { labels }: PolicyPod): boolean {
  return selector === undefined || matchesLabels(selector, labels);
}
