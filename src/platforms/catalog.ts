import type { AttachmentRules } from '../network/attachments/attachments.ts';
import { attachmentsController } from './cni/controller.ts';
import { connectivityCheckerController } from './openshift/connectivity-check/checker.ts';
import { connectivityCheckController } from './openshift/connectivity-check/generator.ts';
import { egressFirewallsController } from './openshift/egress-firewall.ts';
import { egressIPController } from './openshift/egress-ip/controller.ts';
import { egressQoSController } from './openshift/egress-qos.ts';
import { egressRouterController } from './openshift/egress-router/controller.ts';
import { type CatalogSettings, clusterControllers, serviceAllocation } from '../controllers/catalog.ts';
import { type CatalogEntry, specEntry } from '../controllers/run.ts';
import type { ServiceAllocationOptions } from '../controllers/service-allocation/controller.ts';
import type { Cloud } from './openshift/cloud-private-ip/cloud.ts';
import { cloudPrivateIPController } from './openshift/cloud-private-ip/controller.ts';
import { ingressToRouteController } from './openshift/ingress-to-route/controller.ts';

/** Settings of some controllers, beside their context. */
export interface PlatformSettings extends CatalogSettings {
  /** Gives addresses to CloudPrivateIPConfigs; absent: their controller is not there. */
  readonly cloud?: Cloud;
  /** Makes Routes of Ingresses: the server has OpenShift's Routes. Default: false. */
  readonly ingressToRoute?: boolean;
  /** Which networks Pods may name. */
  readonly attachmentRules?: AttachmentRules;
}

/**
 * Controllers of kinds that OpenShift, OVN-Kubernetes and others define: they start where these are served.
 *
 * @param rules which networks Pods may name.
 */
export function networkKindControllers(rules: AttachmentRules = {}): readonly CatalogEntry[] {
  return [
    specEntry(egressIPController),
    specEntry(egressFirewallsController),
    specEntry(egressQoSController),
    specEntry(egressRouterController()),
    specEntry(connectivityCheckerController()),
    specEntry(connectivityCheckController),
    specEntry(attachmentsController(rules)),
  ];
}

/** The controllers of a cluster, and those of the kinds that others define: the set that `servicenet up` runs. */
export function allControllers(options: PlatformSettings): readonly CatalogEntry[] {
  const { cloud, ingressToRoute = false, attachmentRules } = options;
  return [
    ...clusterControllers(options),
    ...networkKindControllers(attachmentRules),
    ...(cloud === undefined ? [] : [specEntry(cloudPrivateIPController(cloud))]),
    ...(ingressToRoute ? [specEntry(ingressToRouteController)] : []),
  ];
}

/**
 * All controllers, for a real cluster. On by default are those that are not part of a cluster: the audit of allocations
 * and the load balancer. Those of kube-controller-manager are for clusters that switch it off, or for chosen Services.
 */
export function controllersBesideACluster(
  allocation: ServiceAllocationOptions,
  cluster: PlatformSettings,
): readonly CatalogEntry[] {
  const others = allControllers(cluster).map((entry) => ({
    ...entry,
    onByDefault: entry.name === 'load-balancer-controller',
  }));
  return [serviceAllocation(allocation, true), ...others];
}
