import type { UsableEndpoints } from './categorize.ts';
import type { Action, SourceActions, TrafficPolicy } from './forwarding-plan.ts';

const rejected: Action = { action: 'reject' };
const dropped: Action = { action: 'drop' };
const forwarded: Record<TrafficPolicy, { readonly kept: Action; readonly masqueraded: Action }> = {
  Cluster: {
    kept: { action: 'forward', to: 'Cluster', masquerade: false },
    masqueraded: { action: 'forward', to: 'Cluster', masquerade: true },
  },
  Local: {
    kept: { action: 'forward', to: 'Local', masquerade: false },
    masqueraded: { action: 'forward', to: 'Local', masquerade: true },
  },
};

/** The inputs of a Service port's actions besides its policies. */
export interface ActionInput {
  readonly usable: UsableEndpoints;
  /** Pods can be recognised in the family. */
  readonly detectsPods: boolean;
  readonly masqueradeAll: boolean;
}

/**
 * The actions for connections to a cluster IP (`nftables/proxier.go`): the internal traffic policy decides. Packets
 * that do not come from a Pod are masqueraded, because replies have to come back through this node: the client may
 * be outside and route the Service range here.
 */
export function internalActions(
  policy: TrafficPolicy,
  { usable, detectsPods, masqueradeAll }: ActionInput,
): SourceActions {
  if (!usable.any) return everyone(rejected);
  if (policy === 'Local' && usable.local.length === 0) return everyone(dropped);
  const fromElsewhere = forward(policy, masqueradeAll || detectsPods);
  return { pod: forward(policy, masqueradeAll), node: fromElsewhere, other: fromElsewhere };
}

/**
 * The actions for connections to external IPs, load balancer IPs and node ports. Policy Cluster masquerades all
 * clients; policy Local keeps the client's address. Pods and the node itself are not subject to policy Local, as
 * though they went out to a load balancer and came back; only the node is masqueraded then, since the address that
 * it connects from may be the load balancer's.
 */
export function externalActions(policy: TrafficPolicy, { usable, detectsPods }: ActionInput): SourceActions {
  if (!usable.any) return everyone(rejected);
  if (policy === 'Cluster') return everyone(forward('Cluster', true));
  const other = usable.local.length === 0 ? dropped : forward('Local', false);
  return {
    pod: detectsPods ? forward('Cluster', false) : other,
    node: forward('Cluster', true),
    other,
  };
}

function forward(to: TrafficPolicy, masquerade: boolean): Action {
  return masquerade ? forwarded[to].masqueraded : forwarded[to].kept;
}

function everyone(action: Action): SourceActions {
  return { pod: action, node: action, other: action };
}
