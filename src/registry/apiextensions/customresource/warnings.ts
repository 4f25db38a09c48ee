/** Warnings about custom objects of kinds whose definitions take what no Pod can use. */
import { parseRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { at } from '../../../objects/read.ts';

/** The warnings for an object, which is stored all the same. @param apiVersion of the request. */
export function customWarnings(apiVersion: string, kind: string, object: KubeObject): readonly string[] {
  if (kind !== 'NetworkAttachmentDefinition' || !apiVersion.startsWith('k8s.cni.cncf.io/')) return [];
  const config = at(object, 'spec', 'config');
  // Without one, multus looks for a file of the node.
  if (typeof config !== 'string' || config === '' || parseRecord(config) !== undefined) return [];
  return ['spec.config: is no JSON object: Pods that name this network will not start'];
}
