package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

// TestStreams connects client-go to a container by each of its ways, and asks for many watches at once.
func TestStreams(t *testing.T) {
	path := os.Getenv("STREAMS_KUBECONFIG")
	if path == "" {
		t.Skip("STREAMS_KUBECONFIG names no cluster: run `npm run test:clients`")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for name, container := range map[string]corev1.Container{
		"box": {Name: "main", Image: "busybox", Command: []string{"sleep", "1000"}},
		"web": {Name: "main", Image: "web", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Status.Phase == corev1.PodRunning, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	command := func(words ...string) *rest.Request {
		options := &corev1.PodExecOptions{Command: words, Stdin: true, Stdout: true, Stderr: true}
		request := client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("box").SubResource("exec")
		return request.VersionedParams(options, scheme.ParameterCodec)
	}
	ways := map[string]func(*rest.Request) (remotecommand.Executor, error){
		"SPDY": func(request *rest.Request) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(config, "POST", request.URL())
		},
		"WebSocket": func(request *rest.Request) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
		},
	}
	for way, executorFor := range ways {
		t.Run("exec over "+way, func(t *testing.T) {
			sent := make([]byte, 4<<20)
			rand.Read(sent)
			executor, err := executorFor(command("sh", "-c", "cat; echo problem >&2; exit 7"))
			if err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			streams := remotecommand.StreamOptions{Stdin: bytes.NewReader(sent), Stdout: &stdout, Stderr: &stderr}
			err = executor.StreamWithContext(ctx, streams)
			var exit exec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 7 {
				t.Errorf("want exit code 7, got %v", err)
			}
			if !bytes.Equal(stdout.Bytes(), sent) {
				t.Errorf("got %d bytes back of %d", stdout.Len(), len(sent))
			}
			if stderr.String() != "problem\n" {
				t.Errorf("got %q as errors", stderr.String())
			}
		})
	}

	t.Run("port-forward over SPDY", func(t *testing.T) {
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			t.Fatal(err)
		}
		request := client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("web").SubResource("portforward")
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", request.URL())
		stop, ready := make(chan struct{}), make(chan struct{})
		forwarder, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- forwarder.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatal(err)
		}
		ports, _ := forwarder.GetPorts()
		for range 20 {
			response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			if !strings.Contains(string(body), `"web"`) {
				t.Errorf("got %q", body)
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	t.Run("watches by HTTP/2", func(t *testing.T) {
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			response, err := httpClient.Get(config.Host + "/api/v1/pods?watch=true")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.ProtoMajor != 2 || response.StatusCode != 200 {
				t.Fatalf("got %s %s", response.Proto, response.Status)
			}
		}
	})
}
