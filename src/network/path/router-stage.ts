/** Where the Pod of an egress router leads a connection on to. */
import { parseAddress } from '../../objects/address.ts';
import { joinKey } from '../../objects/key.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { resolveAttachments } from '../attachments/attachments.ts';
import { AttachmentError } from '../attachments/errors.ts';
import { egressRouterPlugin, readEgressRouter, redirectOf } from '../egress/egress-router.ts';
import type { PolicyConnection } from '../policy/connection.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Stage } from './stage.ts';

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
