/** The source address of a connection out of the cluster, and the marks of its packets. */
import { parseAddress } from '../../objects/address.ts';
import { dscpFor } from '../egress/egress-qos.ts';
import { egressChoice } from '../egress/egress-rules.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { PolicyConnection } from '../policy/connection.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Stage } from './stage.ts';

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
