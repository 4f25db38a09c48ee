import { catalog, type CatalogEntry, type CatalogSettings } from '../controllers/catalog.ts';
import type { KnownController } from '../controllers/selection.ts';
import type { AttachmentRules } from '../network/attachments/attachments.ts';
import type { Cloud } from './openshift/cloud-private-ip/cloud.ts';
import type { ConnectivityCheckerOptions } from './openshift/connectivity-check/checker.ts';

/** Settings of some controllers, beside their context. */
export interface PlatformSettings extends CatalogSettings {
  /** Gives addresses to CloudPrivateIPConfigs; absent: their controller is not there. */
  readonly cloud?: Cloud;
  /** Makes Routes of Ingresses: the server has OpenShift's Routes. Absent: that controller is not there. */
  readonly ingressToRoute?: true;
  /** Which networks Pods may name. */
  readonly attachmentRules?: AttachmentRules;
  readonly connectivityChecker?: ConnectivityCheckerOptions;
}

/** Makes the checks of PodNetworkConnectivityChecks: in a cluster network, from Pods of it. */
export const checkerName = 'check-endpoints-controller';
/** Attaches Pods' further networks: the containers of Pods that ask for some wait for it. */
export const attachmentsName = 'network-attachment-controller';

/** Controllers of kinds that OpenShift, OVN-Kubernetes and others define: they start where these are served. */
export const platformCatalog: readonly CatalogEntry<PlatformSettings>[] = [
  {
    name: 'egress-ip-controller',
    on: 'asked',
    load: async () => {
      const { egressIPController } = await import('./openshift/egress-ip/controller.ts');
      return () => egressIPController;
    },
  },
  {
    name: 'egress-firewall-controller',
    on: 'asked',
    load: async () => {
      const { egressFirewallsController } = await import('./openshift/egress-rules.ts');
      return () => egressFirewallsController;
    },
  },
  {
    name: 'egress-qos-controller',
    on: 'asked',
    load: async () => {
      const { egressQoSController } = await import('./openshift/egress-rules.ts');
      return () => egressQoSController;
    },
  },
  {
    name: 'egress-router-controller',
    on: 'asked',
    load: async () => {
      const { egressRouterController } = await import('./openshift/egress-router/controller.ts');
      return () => egressRouterController();
    },
  },
  {
    name: checkerName,
    on: 'asked',
    load: async () => {
      const { connectivityCheckerController } = await import('./openshift/connectivity-check/checker.ts');
      return ({ connectivityChecker }) => connectivityCheckerController(connectivityChecker);
    },
  },
  {
    name: 'connectivity-check-controller',
    on: 'asked',
    load: async () => {
      const { connectivityCheckController } = await import('./openshift/connectivity-check/generator.ts');
      return () => connectivityCheckController;
    },
  },
  {
    name: attachmentsName,
    on: 'asked',
    load: async () => {
      const { attachmentsController } = await import('./cni/controller.ts');
      return ({ attachmentRules }) => attachmentsController(attachmentRules);
    },
  },
  {
    name: 'cloud-private-ip-controller',
    on: 'asked',
    needs: 'cloud',
    load: async () => {
      const { cloudPrivateIPController } = await import('./openshift/cloud-private-ip/controller.ts');
      return ({ cloud }) => cloud && cloudPrivateIPController(cloud);
    },
  },
  {
    name: 'ingress-to-route-controller',
    on: 'asked',
    needs: 'ingressToRoute',
    load: async () => {
      const { ingressToRouteController } = await import('./openshift/ingress-to-route/controller.ts');
      return () => ingressToRouteController;
    },
  },
];

/** The controllers of a cluster, and those of the kinds that others define. */
export const allControllers: readonly CatalogEntry<PlatformSettings>[] = [...catalog, ...platformCatalog];

type Default = CatalogEntry['on'];

function inOrder(...defaults: readonly Default[]): readonly CatalogEntry<PlatformSettings>[] {
  return defaults.flatMap((wanted) => allControllers.filter(({ on }) => on === wanted));
}

/** The controllers that `up` and `servicenet/testing` know. */
export function localControllers(cluster: {
  readonly nodes: number;
  readonly allocation: 'server' | 'controller';
  readonly platform: 'kubernetes' | 'openshift';
}): readonly KnownController[] {
  const isThere = ({ needs }: CatalogEntry<PlatformSettings>): boolean =>
    (needs !== 'simulation' || cluster.nodes > 0) &&
    (needs !== 'ingressToRoute' || cluster.platform === 'openshift');
  return inOrder('asked', 'always', 'beside')
    .filter(isThere)
    .map(({ name, on }) => ({
      name,
      // Our own server needs no audit.
      onByDefault: on !== 'beside' || cluster.allocation === 'controller',
    }));
}

/** The controllers of `servicenet controller`. On by default are those that a cluster does not have. */
export function remoteControllers(): readonly KnownController[] {
  return inOrder('beside', 'always', 'asked')
    .filter(({ needs }) => needs === undefined || needs === 'serviceAllocation')
    .map(({ name, on }) => ({ name, onByDefault: on !== 'asked' }));
}
