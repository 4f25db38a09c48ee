/** The kinds of nodes, scheduling, storage and clients, without Services and workloads. */
import { apiServiceStrategy } from './apiregistration/apiservice/strategy.ts';
import {
  certificateSigningRequestStrategy,
  type CertificateReader,
} from './certificates/certificatesigningrequest/strategy.ts';
import { csiDriverStrategy } from './storage/csidriver/strategy.ts';
import { csiNodeStrategy } from './storage/csinode/strategy.ts';
import { csiStorageCapacityStrategy } from './storage/csistoragecapacity/strategy.ts';
import { flowSchemaStrategy } from './flowcontrol/flowschema/strategy.ts';
import { sharedWithHpaV2 } from './autoscaling/horizontalpodautoscaler/conversion.ts';
import { horizontalPodAutoscalerStrategy } from './autoscaling/horizontalpodautoscaler/strategy.ts';
import { priorityClassStrategy } from './scheduling/priorityclass/strategy.ts';
import { priorityLevelStrategy } from './flowcontrol/prioritylevelconfiguration/strategy.ts';
import { rowsOf } from './generic/resource-row.ts';
import { runtimeClassStrategy } from './node/runtimeclass/strategy.ts';
import { storageClassStrategy, volumeAttributesClassStrategy } from './storage/storageclass/strategy.ts';
import type { ResourceDefinition } from './generic/strategy.ts';
import { volumeAttachmentStrategy } from './storage/volumeattachment/strategy.ts';
import { flowcontrolGroup } from './flowcontrol/prioritylevelconfiguration/bootstrap.ts';

const cluster = { namespaced: false };

export function clusterKinds(certificates: CertificateReader): ResourceDefinition[] {
  return [...autoscaling(), ...storage(), ...classes(), ...flowcontrol(), ...extension(certificates)];
}

function autoscaling(): ResourceDefinition[] {
  const about = { categories: ['all'], shortNames: ['hpa'] };
  const strategy = horizontalPodAutoscalerStrategy;
  const hash = 'qwQve8ut294=';
  const row = (version: string) => rowsOf('autoscaling', 'autoscaling', version);
  return [
    row('v2')('HorizontalPodAutoscaler', 'horizontalpodautoscalers', hash, strategy, about),
    row('v1')('HorizontalPodAutoscaler', 'horizontalpodautoscalers', hash, strategy, {
      ...about,
      storedAs: sharedWithHpaV2,
    }),
  ];
}

function storage(): ResourceDefinition[] {
  const row = rowsOf('storage.k8s.io', 'storage');
  const capacity = csiStorageCapacityStrategy;
  const attributes = volumeAttributesClassStrategy;
  return [
    row('CSIDriver', 'csidrivers', 'hL6j/rwBV5w=', csiDriverStrategy, cluster),
    row('CSINode', 'csinodes', 'Pe62DkZtjuo=', csiNodeStrategy, cluster),
    row('CSIStorageCapacity', 'csistoragecapacities', 'xeVl+2Ly1kE=', capacity),
    row('StorageClass', 'storageclasses', 'K+m6uJwbjGY=', storageClassStrategy, {
      ...cluster,
      shortNames: ['sc'],
    }),
    row('VolumeAttachment', 'volumeattachments', 'tJx/ezt6UDU=', volumeAttachmentStrategy, cluster),
    row('VolumeAttributesClass', 'volumeattributesclasses', 'tIjydgKBC5w=', attributes, {
      ...cluster,
      shortNames: ['vac'],
    }),
  ];
}

function classes(): ResourceDefinition[] {
  return [
    rowsOf('scheduling.k8s.io', 'scheduling')(
      'PriorityClass',
      'priorityclasses',
      '1QwjyaZjj3Y=',
      priorityClassStrategy,
      { ...cluster, shortNames: ['pc'] },
    ),
    rowsOf('node.k8s.io', 'node')(
      'RuntimeClass',
      'runtimeclasses',
      'WQTu1GL3T2Q=',
      runtimeClassStrategy,
      cluster,
    ),
  ];
}

function flowcontrol(): ResourceDefinition[] {
  const row = rowsOf(flowcontrolGroup, 'flowcontrol');
  const plural = 'prioritylevelconfigurations';
  return [
    row('FlowSchema', 'flowschemas', 'GJVAJZSZBIw=', flowSchemaStrategy, cluster),
    row('PriorityLevelConfiguration', plural, 'Kir5PVfvNeI=', priorityLevelStrategy, cluster),
  ];
}

function extension(certificates: CertificateReader): ResourceDefinition[] {
  return [
    rowsOf('certificates.k8s.io', 'certificates')(
      'CertificateSigningRequest',
      'certificatesigningrequests',
      '95fRKMXA+00=',
      certificateSigningRequestStrategy(certificates),
      { ...cluster, shortNames: ['csr'] },
    ),
    rowsOf('apiregistration.k8s.io', 'kube-aggregator.pkg.apis.apiregistration')(
      'APIService',
      'apiservices',
      'InPBPD7+PqM=',
      apiServiceStrategy,
      { ...cluster, categories: ['api-extensions'] },
    ),
  ];
}
