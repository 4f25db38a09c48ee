import type { Informer } from '../../client/informer.ts';
import { nodes } from '../../client/resources.ts';
import type { Node } from '../../objects/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';

/** The informer of Nodes that all controllers of service networking share. */
export function nodeInformer(context: Pick<ControllerContext, 'informers'>): Informer<Node> {
  return context.informers.informer(nodes, { transform: slimNode });
}

/** Drops the large parts of Nodes that are not read here: images, volumes and managed fields. */
function slimNode(node: Node): Node {
  Reflect.deleteProperty(node.metadata, 'managedFields');
  for (const member of ['images', 'volumesInUse', 'volumesAttached']) {
    Reflect.deleteProperty(node.status, member);
  }
  return node;
}
