package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// metadataBytes exceeds http.head_bytes_max (16 KiB), and is below what the server reads.
const metadataBytes = 20 << 10

type grpcClient struct{ *grpc.ClientConn }

func newGrpc(server string) (client, error) {
	transport := insecure.NewCredentials()
	if secure := config(); secure != nil {
		transport = credentials.NewTLS(secure)
	}
	connection, err := grpc.NewClient(server, grpc.WithTransportCredentials(transport))
	return grpcClient{connection}, err
}

// raw passes messages through: their few fields are written here, without generated code.
type raw struct{}

func (raw) Name() string                        { return "proto" }
func (raw) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (raw) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (c grpcClient) call(ctx context.Context, key string, count int) ([]int64, error) {
	if token := os.Getenv("CLIENTS_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	source, counter, isCounter := strings.Cut(key, ":")
	request := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), source)
	request = protowire.AppendVarint(protowire.AppendTag(request, 2, protowire.VarintType), uint64(count))
	if isCounter {
		request = protowire.AppendString(protowire.AppendTag(request, 3, protowire.BytesType), counter)
	}
	var response []byte
	if err := c.Invoke(ctx, "/snowmint.v1.Mint/Mint", &request, &response, grpc.ForceCodec(raw{})); err != nil {
		return nil, err
	}
	// The only field is the packed list of IDs, 8 bytes each.
	_, _, tag := protowire.ConsumeTag(response)
	packed, _ := protowire.ConsumeBytes(response[tag:])
	var ids []int64
	for len(packed) > 0 {
		id, size := protowire.ConsumeFixed64(packed)
		ids, packed = append(ids, int64(id)), packed[size:]
	}
	return ids, nil
}

func (c grpcClient) incr(key string) ([]int64, error) { return c.call(ctx, key, 1) }

func (c grpcClient) mint(key string, count int) ([]int64, error) { return c.call(ctx, key, count) }

func (c grpcClient) multi(string) ([]int64, error) { return nil, fmt.Errorf("no transactions") }

// metadata sends more metadata than a server accepts. The call must fail as gRPC says, and the connection stay.
func (c grpcClient) metadata(key string) ([]int64, error) {
	long := metadata.AppendToOutgoingContext(ctx, "x-long", strings.Repeat("a", metadataBytes))
	if _, err := c.call(long, key, 1); status.Code(err) != codes.ResourceExhausted {
		return nil, fmt.Errorf("%d bytes of metadata: %v", metadataBytes, err)
	}
	return c.call(ctx, key, 1)
}
