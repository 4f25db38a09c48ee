/** An API server to test. */
export interface Target {
  /** For the report: `embedded (IPv4)`. */
  readonly name: string;
  readonly kubeconfig: string;
  /** Who writes Endpoints and EndpointSlices there: the target itself, or nobody until we do. */
  readonly endpoints: 'target' | 'nobody';
  /** Who runs servicenet's controllers: the suite as processes, or a Deployment in the cluster. */
  readonly controllers: 'suite' | 'deployed';
  stop(): Promise<void>;
}
